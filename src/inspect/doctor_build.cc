#include "inspect/doctor.h"
#include "lowtide/command/build.h"

namespace lowtide {
namespace {

// "a, b and c"
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string vector_text(const Build& found) {
  if (found.vector_used) return *found.vector_used + " code, which this processor runs";
  if (found.vector_paths.empty()) return "no vector code";
  return listed(found.vector_paths) + " code, which this processor cannot run";
}

}  // namespace

Fact build_fact(const DoctorOptions& options) {
  const Build found = build(options.folder);
  std::vector<std::string> with;
  std::vector<std::string> without;
  (found.io_uring ? with : without).emplace_back("io_uring");
  (found.http ? with : without).emplace_back("http");
  (found.command ? with : without).emplace_back("the command");
  (found.guard ? with : without).emplace_back("the guard library");
  Fact fact{"build", without.empty() ? FactState::good : FactState::note,
            "Lowtide " + found.version, "", ""};
  if (!with.empty()) fact.value += " with " + listed(with);
  if (!without.empty()) fact.value += (with.empty() ? " without " : ", without ") + listed(without);
  fact.detail = found.compiler + " for " + found.target + "; " + vector_text(found);
  if (found.http && !found.why_no_http.empty()) {
    fact.state = FactState::note;
    fact.detail += "; objects cannot be read here: " + found.why_no_http;
  }
  if (!found.io_uring) {
    fact.advice = "build with LOWTIDE_URING=ON, the default";
  } else if (!found.http) {
    fact.advice = "to read http:// and s3://, build with LOWTIDE_HTTP=ON, the default";
  } else if (!found.command) {
    fact.advice = "for the command, build with LOWTIDE_COMMAND=ON";
  }
  return fact;
}

}  // namespace lowtide
