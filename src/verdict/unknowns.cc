#include "verdict/unknowns.h"

#include <map>
#include <set>
#include <utility>

#include "core/quote.h"
#include "verdict/lives.h"

namespace lowtide {
namespace {

// What was unknown and why -> whose it was. Sorted by text, so that equal traces give equal
// reports.
using Unknowns = std::map<std::pair<std::string, std::string>, std::set<std::string>>;

// `whose` makes the name on demand: hardly any figure of a long trace needs it.
template <typename Name>
void note(Unknowns& unknowns, const char* what, const Figure& figure, const Name& whose) {
  if (figure.value || figure.why == kNotAsked) return;
  auto& names = unknowns[{what, figure.why.empty() ? "no reason was recorded" : figure.why}];
  if (names.size() < 3) names.insert(whose());  // no more than three are named
}

void note_process(Unknowns& unknowns, const ProcessReading& process, bool asked_files) {
  const auto whose = [&process] { return process_text(process.name, process.pid); };
  note(unknowns, "heap", process.anon, whose);
  note(unknowns, "mapped pages", process.file, whose);
  note(unknowns, "shared memory", process.shmem, whose);
  note(unknowns, "page tables", process.page_tables, whose);
  note(unknowns, "PSS", process.pss, whose);
  // The PSS comes from the same read as the list of files.
  if (asked_files) note(unknowns, "list of mapped files", process.pss, whose);
}

std::string sentence(const std::string& what, const std::string& why,
                     const std::set<std::string>& names) {
  std::string text = what;
  if (names.size() > 2) {
    text += " of several";
  } else {
    const char* link = " of ";
    for (const std::string& name : names) {
      if (name.empty()) continue;
      text += link + name;
      link = " and ";
    }
  }
  return text + ": " + shown(why);
}

}  // namespace

std::vector<std::string> unknowns_of(const Trace& trace) {
  Unknowns unknowns;
  const auto nobody = [] { return std::string(); };
  bool asked_files = false, asked_group = false;
  for (const Reading& reading : trace.readings) {
    for (const ProcessReading& process : reading.processes) {
      note_process(unknowns, process, reading.files.has_value());
    }
    asked_files = asked_files || reading.files;
    asked_group = asked_group || reading.group;
    if (reading.group) note(unknowns, "memory group", reading.group->usage, nobody);
    if (!reading.files) continue;
    for (const FileReading& file : *reading.files) {
      const auto whose = [&file] { return shown(file.path); };
      note(unknowns, "mapped part", file.mapped, whose);
      note(unknowns, "page cache", file.cached, whose);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [key, names] : unknowns) {
    sentences.push_back(sentence(key.first, key.second, names));
  }
  // A short run is expected to lack these; its verdict is already "too short".
  constexpr std::size_t kFewReadings = 12;
  const bool expected = trace.readings.size() >= kFewReadings;
  if (!asked_files && expected) sentences.emplace_back("list of mapped files: never read");
  if (!asked_group && expected) sentences.emplace_back("memory group: never read");
  if (!trace.ending) sentences.emplace_back("how the run ended: the trace does not record it");
  return sentences;
}

}  // namespace lowtide
