#include "lowtide/command/doctor.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "files.h"
#include "lowtide/command/build.h"
#include "lowtide/command/json.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

constexpr std::size_t kStateWidth = 9;  // the longest word and two spaces
constexpr std::size_t kNarrow = 50;     // columns: below this, details are barely indented

struct DoctorWords {
  std::string path;
  std::string memory;
  bool json = false;
};

Tone tone_of(FactState state) {
  switch (state) {
    case FactState::good:
      return Tone::good;
    case FactState::note:
      return Tone::warning;
    case FactState::bad:
      return Tone::bad;
    case FactState::unknown:
      break;
  }
  return Tone::dim;
}

std::string set_in(const std::string& text, Tone tone) {
  const std::size_t columns = output().columns;
  const std::size_t indent = columns != 0 && columns < kNarrow ? 2 : kStateWidth;
  const std::size_t width = columns == 0 ? 0 : columns - indent;
  std::string lines = wrapped(shown(text), width, 0);
  while (lines.ends_with('\n')) lines.pop_back();
  std::string out;
  for (std::size_t first = 0; first <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', first), lines.size());
    out += std::string(indent, ' ') + paint(lines.substr(first, end - first), tone) + "\n";
    first = end + 1;
  }
  return out;
}

std::string text_of(const Fact& fact) {
  const std::string word = fact_state_word(fact.state);
  const std::string value = shown(fact.value);
  const std::size_t columns = output().columns;
  const bool below = columns != 0 && kStateWidth + width_of(fact.name + ": " + value) > columns;
  std::string text = paint(word, tone_of(fact.state)) +
                     std::string(kStateWidth - word.size(), ' ') + paint(fact.name, Tone::bold) +
                     (below ? ":\n" + set_in(fact.value, Tone::plain) : ": " + value + "\n");
  if (!fact.detail.empty()) text += set_in(fact.detail, Tone::dim);
  if (!fact.advice.empty()) {
    text += set_in((output().unicode ? "→ " : "-> ") + fact.advice, Tone::plain);
  }
  return text;
}

void add_build(JsonWriter& json) {
  const Build found = build();
  json.key("build")
      .begin_object()
      .field("version", found.version)
      .field("compiler", found.compiler)
      .field("target", found.target)
      .field("io_uring", found.io_uring)
      .field("http", found.http)
      .field("why_no_http", found.why_no_http)
      .field("vector_paths", found.vector_paths)
      .field("vector_used", found.vector_used)
      .field("command", found.command)
      .field("guard", found.guard)
      .end_object();
}

std::string json_of(const DoctorOptions& options, const std::vector<Fact>& facts) {
  JsonWriter json;
  json.begin_object().field("path", options.path).field("conclusion", conclusion_of(facts));
  add_build(json);
  json.key("facts").begin_array();
  for (const Fact& fact : facts) {
    json.begin_object()
        .field("name", fact.name)
        .field("state", fact_state_word(fact.state))
        .field("value", fact.value)
        .field("detail", fact.detail)
        .field("advice", fact.advice)
        .end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

}  // namespace

Action add_doctor(CLI::App& app) {
  const auto words = std::make_shared<DoctorWords>();
  app.add_option("PATH", words->path,
                 "A file or a folder: report where it is stored and how it will be read")
      ->type_name("");
  app.add_option("--memory", words->memory,
                 "The memory budget you intend to give Lowtide, such as 64MiB")
      ->type_name("SIZE");
  app.add_flag("--json", words->json, "Print one JSON object instead of text");
  CLI::App* const verb = &app;
  return [words, verb](const Call&) {
    DoctorOptions options;
    if (verb->count("PATH") > 0) options.path = words->path;
    if (!words->memory.empty()) options.memory_bytes = parse_size(words->memory, "--memory");
    const std::vector<Fact> facts = examine(options);
    if (words->json) {
      print(json_of(options, facts));
    } else {
      print(paint(wrapped(shown(conclusion_of(facts)), output().columns, 0), Tone::bold) + "\n\n");
      for (const Fact& fact : facts) print(text_of(fact));
    }
    return kDone;
  };
}

}  // namespace lowtide::cli
