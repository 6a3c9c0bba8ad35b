// page.h - the parts of the HTML report. html_report (report.h) puts them together.
//
// Everything that comes from a trace is escaped here. The tables and the first picture are plain
// HTML and SVG, so that the page is complete without JavaScript.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/profile.h"
#include "meter/trace.h"
#include "report/looks.h"
#include "verdict/series.h"

namespace lowtide {

// The command that was run, cut to `most` letters: a script on the command line can be long.
[[nodiscard]] std::string command_of(const Trace& trace, std::size_t most);

// From the doctype to the opening body tag.
[[nodiscard]] std::string page_top(const std::string& title,
                                   std::initializer_list<std::string_view> styles);
[[nodiscard]] std::string page_head(const Trace& trace);          // command, machine, time
[[nodiscard]] std::string page_verdict(const Verdict& verdict);   // the verdict, and what to do
[[nodiscard]] std::string page_evidence(const Verdict& verdict);  // and what is unknown
[[nodiscard]] std::string page_legend(const std::vector<LegendEntry>& entries);
[[nodiscard]] std::string page_levels(const Trace& trace);     // start, peak, end of each kind
[[nodiscard]] std::string page_processes(const Trace& trace);  // empty if there is only one
// At most 60; libraries share one row, which unfolds.
[[nodiscard]] std::string page_files(const Trace& trace);
[[nodiscard]] std::string page_marks(const Trace& trace);  // at most 100; empty without marks
[[nodiscard]] std::string page_cost(const Trace& trace);   // of the measurement
[[nodiscard]] std::string page_words();                    // explains the terms

// The data that the script draws, as JSON that is safe inside a script element.
[[nodiscard]] std::string page_data(const Trace& trace, const Series& series);

// One sentence for readers who cannot see the picture.
[[nodiscard]] std::string picture_in_words(const Trace& trace);

}  // namespace lowtide
