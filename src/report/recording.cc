#include "meter/recording.h"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/quote.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "meter/trace_fields.h"
#include "os/file.h"
#include "os/output_file.h"
#include "report/report.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // weeks of readings

std::string read_all(const std::string& path) {
  const File file(path);
  const std::uint64_t size = file.shard().size_bytes;
  if (size > kMostBytes) {
    throw FormatError(path + ": too large for a trace: expected at most " +
                      format_bytes(kMostBytes) + ", found " + format_bytes(size));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read_exact(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_dat(std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords{"CMDLINE ", "MEM ", "FUNC ", "CHLD "};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.starts_with(word); });
}

struct Form {
  std::string_view suffix;
  std::string (*write)(const Trace& trace);  // nullptr: the picture, whose writer takes options
};
constexpr std::array<Form, 5> kForms{{{".html", html_report},
                                      {".svg", nullptr},
                                      {".json", json_report},
                                      {".dat", dat_report},
                                      {".trace", trace_text}}};

const Form& form_of(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  for (const Form& form : kForms) {
    if (name.ends_with(form.suffix)) return form;
  }
  std::string known;
  for (const Form& form : kForms) known += (known.empty() ? "" : ", ") + std::string(form.suffix);
  throw std::invalid_argument("the name " + shown(path) +
                              " has no known suffix; end it with one of " + known);
}

}  // namespace

Recording Recording::load(const std::string& path) {
  const std::string text = read_all(path);
  if (text.starts_with(kTraceMagic)) return recording_of(parse_trace(text, path));
  if (is_dat(text)) return recording_of(parse_dat(text, path));
  if (text.starts_with('{')) return recording_of(parse_json(text, path));
  throw FormatError(path +
                    ": expected a trace or a JSON report of lowtide, or a .dat of mprof; it begins "
                    "with " +
                    excerpt(std::string_view(text).substr(0, 20)));
}

std::string Recording::html() const {
  return html_report(impl_->trace);
}

std::string Recording::svg(const PictureOptions& options) const {
  if (!(options.seconds >= 0)) {  // also refuses NaN
    throw std::invalid_argument("seconds: expected 0 or more, found " +
                                format_fixed(options.seconds, 3));
  }
  return svg_report(impl_->trace, options);
}
std::string Recording::json() const {
  return json_report(impl_->trace);
}

void Recording::save(const std::string& path, const PictureOptions& picture) const {
  const Form& form = form_of(path);  // fails before any work is done
  write_whole(path, form.write == nullptr ? svg(picture) : form.write(impl_->trace));
}

}  // namespace lowtide
