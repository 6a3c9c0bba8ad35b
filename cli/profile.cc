#include "lowtide/profile.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "failure.h"
#include "lowtide/bytes.h"
#include "lowtide/command.h"
#include "lowtide/json.h"
#include "outputs.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct ProfileWords {
  std::string trace;
  std::vector<std::string> outputs;
  std::optional<double> interval_s;
  bool no_children = false;
  bool json = false;
};

std::string bytes_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "unknown";
}

std::string growth_text(const std::optional<std::int64_t>& bytes) {
  if (!bytes) return "unknown";
  const bool down = *bytes < 0;
  const auto size = static_cast<std::uint64_t>(down ? -*bytes : *bytes);
  return (down ? "-" : "+") + format_bytes(size);
}

std::string table_of(const Recording& recording, const Terminal& on) {
  const Peak peak = recording.peak();
  const Growth growth = recording.growth();
  Table table({{"memory"}, {"peak", Table::Align::right}, {"growth", Table::Align::right}});
  table.add_row({"resident (RSS)", bytes_text(peak.rss), growth_text(growth.rss)});
  table.add_row({"  heap (anonymous)", bytes_text(peak.anon), growth_text(growth.anon)});
  table.add_row({"  mapped files", bytes_text(peak.file), growth_text(growth.file)});
  table.add_row({"  shared", bytes_text(peak.shmem), growth_text(growth.shmem)});
  table.add_row({"page tables", bytes_text(peak.page_tables), growth_text(growth.page_tables)});
  table.add_row(
      {"page cache of its files", bytes_text(peak.page_cache), growth_text(growth.page_cache)});
  if (peak.group_usage) table.add_row({"memory group", bytes_text(peak.group_usage), ""});
  return table.text(on);
}

Tone tone_of(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::heap_leak:
    case VerdictKind::page_tables:
      return Tone::bad;
    case VerdictKind::flat:
      return Tone::good;
    case VerdictKind::too_short:
      return Tone::plain;
    default:
      return Tone::warning;
  }
}

std::string text_of(const Recording& recording, const Terminal& on) {
  const Verdict verdict = recording.verdict();
  const auto line = [&](const std::string& text) {
    return "  " + wrapped(shown(text, on), on.columns > 2 ? on.columns - 2 : 0, 2) + "\n";
  };
  std::string text = table_of(recording, on) + "\n";
  text += paint(wrapped(shown(verdict.headline, on), on.columns, 0), tone_of(verdict.kind), on);
  text += "\n";
  for (const std::string& fact : verdict.evidence) text += line(fact);
  for (const std::string& fact : verdict.unknown) text += line("unknown: " + fact);
  for (const std::string& step : verdict.advice) text += line("try: " + step);
  text += "\n" + count_text(recording.readings()) +
          (recording.readings() == 1 ? " reading in " : " readings in ") +
          format_fixed(recording.seconds(), 1) + " s";
  if (recording.cost() > 0) {  // a .dat does not tell
    text += "; watching cost " + format_fixed(recording.cost() * 100, 2) + " % of a core";
  }
  text += "\n";
  if (recording.cut()) text += "The trace ends early: its profiler was killed.\n";
  return text;
}

std::string json_of(const Recording& recording, const std::vector<std::string>& command,
                    std::optional<int> exit_code) {
  const Peak peak = recording.peak();
  const Growth growth = recording.growth();
  const Verdict verdict = recording.verdict();
  JsonWriter json;
  json.begin_object().field("command", command).field("seconds", recording.seconds());
  json.field("readings", static_cast<std::uint64_t>(recording.readings()))
      .field("cost", recording.cost())
      .field("cut", recording.cut());
  json.key("peak").begin_object();
  json.field("rss", peak.rss).field("anon", peak.anon).field("file", peak.file);
  json.field("shmem", peak.shmem).field("page_tables", peak.page_tables);
  json.field("page_cache", peak.page_cache).field("group_usage", peak.group_usage).end_object();
  json.key("growth").begin_object();
  json.field("rss", growth.rss).field("anon", growth.anon).field("file", growth.file);
  json.field("shmem", growth.shmem).field("page_tables", growth.page_tables);
  json.field("page_cache", growth.page_cache).end_object();
  json.key("verdict").begin_object();
  json.field("kind", verdict_word(verdict.kind)).field("headline", verdict.headline);
  json.field("evidence", verdict.evidence).field("unknown", verdict.unknown);
  json.field("advice", verdict.advice).end_object();
  json.field("exit", exit_code).end_object();
  return json.text() + "\n";
}

// Every output is tried, also when one before it failed.
int save_all(const Recording& recording, const std::vector<std::string>& outputs) {
  int code = kDone;
  for (const std::string& output : outputs) {
    try {
      recording.save(output);
    } catch (...) {
      (void)tell_failure("profile");
      code = kFailed;
    }
  }
  return code;
}

// The output that is written while the program runs; empty: none was asked for.
std::string first_trace(const std::vector<std::string>& outputs) {
  const auto found = std::ranges::find_if(
      outputs, [](const std::string& output) { return output.ends_with(".trace"); });
  return found == outputs.end() ? "" : *found;
}

int profile_program(const Call& call, const ProfileWords& words) {
  std::optional<Profile> profile;
  const CommandEnd end = run_command({.arguments = call.command, .variables = {}}, [&](int pid) {
    ProfileOptions options;
    options.pid = pid;
    options.interval_s = words.interval_s.value_or(0);
    options.children = !words.no_children;
    options.command = call.command;
    options.trace_path = first_trace(words.outputs);  // readable even if we are killed
    profile.emplace(options);
  });
  if (!end.error.empty()) {
    tell("profile", end.error);
    return end.exit_code;
  }
  int saved = kDone;
  try {
    profile->stop(end.exit_code);
  } catch (...) {  // the trace has a hole; what is in memory is whole
    saved = tell_failure("profile");
  }
  const Recording recording = profile->recording();
  saved = std::max(saved, save_all(recording, words.outputs));
  if (words.json) {
    print(json_of(recording, call.command, end.exit_code));
  } else {
    print_error(text_of(recording, error_output()));  // stdout is the program's
  }
  return end.exit_code != 0 ? end.exit_code : saved;
}

int show_trace(const ProfileWords& words) {
  const Recording recording = Recording::load(words.trace);
  const int saved = save_all(recording, words.outputs);
  print(words.json ? json_of(recording, {}, std::nullopt) : text_of(recording, output()));
  return saved;
}

}  // namespace

Run add_profile(CLI::App& app) {
  const auto words = std::make_shared<ProfileWords>();
  app.add_option(
         "TRACE", words->trace,
         "A recording to look at: a first word that ends in .trace, .dat (mprof) or .json. Any "
         "other begins the program, and all words after it are the program's; -- before it "
         "is needed only where a program is called so")
      ->type_name("");
  app.add_option("-o,--output", words->outputs,
                 "Write the report: .html, .svg, .json, .dat (mprof) or .trace; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);  // one each time: what follows is the program
  app.add_option("--interval", words->interval_s, "Seconds between readings; chosen if not given")
      ->type_name("S");
  app.add_flag("--no-children", words->no_children, "Only the program, not what it starts");
  app.add_flag("--json", words->json, "One JSON object as the last line of stdout");
  return [words](const Call& call) {
    const bool program = !call.command.empty();
    if (program == !words->trace.empty()) {
      throw std::invalid_argument(program ? "a trace and a program: name one of them"
                                          : "no program: name one, as in lowtide profile python "
                                            "train.py");
    }
    const double interval_s = words->interval_s.value_or(1);
    if (!(interval_s >= 0.001 && interval_s <= 3600)) {  // nor NaN
      throw std::invalid_argument("--interval: expected seconds from 0.001 to 3600");
    }
    for (const std::string& output : words->outputs) check_output(output);
    return program ? profile_program(call, *words) : show_trace(*words);
  };
}

}  // namespace lowtide::cli
