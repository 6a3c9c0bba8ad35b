// report.h - a trace as a picture, as a page, and as facts for other programs.
#pragma once

#include <string>

#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

// One HTML file that needs no network; under 500 KB for an hour.
[[nodiscard]] std::string html_report(const Trace& trace);
// The picture alone, readable without the page's style sheet.
[[nodiscard]] std::string svg_report(const Trace& trace, const PictureOptions& options = {});
// Everything, as documented in docs/profile.md; the page shows the same numbers. It contains the
// trace, so it can be read back without loss. Throws FormatError if it is some other JSON.
[[nodiscard]] std::string json_report(const Trace& trace);
[[nodiscard]] Trace parse_json(std::string_view text, const std::string& path);
// memory_profiler's mprof format, written and read (only RSS; the rest is unknown).
[[nodiscard]] std::string dat_report(const Trace& trace);
[[nodiscard]] Trace parse_dat(std::string_view text, const std::string& path);

}  // namespace lowtide
