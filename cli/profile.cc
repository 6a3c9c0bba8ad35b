#include "lowtide/profile.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "failure.h"
#include "files.h"
#include "live.h"
#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/run_command.h"
#include "lowtide/command/terminal.h"
#include "lowtide/error.h"
#include "outputs.h"
#include "stop.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct ProfileWords {
  std::string trace;
  std::vector<std::string> outputs;
  std::vector<std::string> watch;
  std::optional<double> interval_s;
  std::optional<int> pid;
  std::string fail_above;
  bool no_children = false;
  bool json = false;
};

using Bytes = std::optional<std::uint64_t>;

std::string table_of(const Recording& recording, const ProfileWords& words, const Terminal& on) {
  const Level start = recording.start(), peak = recording.peak(), end = recording.end();
  constexpr Table::Align kRight = Table::Align::right;
  Table table({{"memory"}, {"start", kRight}, {"peak", kRight}, {"end", kRight}});
  const auto add = [&](const std::string& name, const Bytes& first, const Bytes& most,
                       const Bytes& last) {
    table.add_row({name, bytes_text(first), bytes_text(most), bytes_text(last)});
  };
  add("resident (RSS)", start.rss, peak.rss, end.rss);
  add("  heap (anonymous)", start.anon, peak.anon, end.anon);
  add("  mapped files", start.file, peak.file, end.file);
  add("  shared", start.shmem, peak.shmem, end.shmem);
  add("page tables", start.page_tables, peak.page_tables, end.page_tables);
  add("page cache of the files", start.page_cache, peak.page_cache, end.page_cache);
  for (const std::string& path : words.watch) {
    const FileCache cache = recording.page_cache_of(path);
    add("  cached of " + shown(path, on), cache.start, cache.peak, cache.end);
  }
  if (peak.group_usage) add("memory group", start.group_usage, peak.group_usage, end.group_usage);
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

std::string text_of(const Recording& recording, const ProfileWords& words, const Terminal& on) {
  const Verdict verdict = recording.verdict();
  const auto line = [&](const std::string& text) {
    return "  " + wrapped(shown(text, on), on.columns > 2 ? on.columns - 2 : 0, 2) + "\n";
  };
  std::string text = table_of(recording, words, on) + "\n";
  text += paint(wrapped(shown(verdict.headline, on), on.columns, 0), tone_of(verdict.kind), on);
  text += "\n";
  for (const std::string& fact : verdict.evidence) text += line(fact);
  for (const std::string& fact : verdict.unknown) text += line("unknown: " + fact);
  for (const std::string& step : verdict.advice) text += line("try: " + step);
  text += "\n" + grouped(recording.readings()) +
          (recording.readings() == 1 ? " reading in " : " readings in ") +
          format_fixed(recording.seconds(), 1) + " s";
  if (recording.cost() > 0) {  // a .dat file does not record it
    text += "; profiling used " + format_fixed(recording.cost() * 100, 2) + " % of a core";
  }
  text += "\n";
  if (recording.cut()) {
    text +=
        "The last line of the trace is incomplete and was left out: the profiler was killed or is "
        "still running, or the disk was full.\n";
  }
  return text;
}

void add_level(JsonWriter& json, const char* name, const Level& level) {
  json.key(name).begin_object();
  json.field("rss", level.rss).field("anon", level.anon).field("file", level.file);
  json.field("shmem", level.shmem).field("page_tables", level.page_tables);
  json.field("page_cache", level.page_cache).field("group_usage", level.group_usage).end_object();
}

std::string json_of(const Recording& recording, const ProfileWords& words) {
  const Growth growth = recording.growth();
  const Verdict verdict = recording.verdict();
  JsonWriter json;
  json.begin_object().field("command", recording.command()).field("seconds", recording.seconds());
  json.field("readings", static_cast<std::uint64_t>(recording.readings()))
      .field("cost", recording.cost())
      .field("cut", recording.cut());
  add_level(json, "start", recording.start());
  add_level(json, "peak", recording.peak());
  add_level(json, "end", recording.end());
  json.key("growth").begin_object();
  json.field("rss", growth.rss).field("anon", growth.anon).field("file", growth.file);
  json.field("shmem", growth.shmem).field("page_tables", growth.page_tables);
  json.field("page_cache", growth.page_cache).end_object();
  json.key("watched").begin_array();
  for (const std::string& path : words.watch) {
    const FileCache cache = recording.page_cache_of(path);
    json.begin_object().field("path", path).field("size", cache.size);
    json.field("start", cache.start).field("peak", cache.peak).field("end", cache.end);
    json.end_object();
  }
  json.end_array().key("verdict").begin_object();
  json.field("kind", verdict_word(verdict.kind)).field("headline", verdict.headline);
  json.field("evidence", verdict.evidence).field("unknown", verdict.unknown);
  json.field("advice", verdict.advice).end_object();
  json.field("exit", recording.exit_code()).end_object();
  return json.text() + "\n";
}

// Tries every output, even after one has failed.
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

// The output that is written while the program runs; empty: none was requested.
std::string first_trace(const std::vector<std::string>& outputs) {
  const auto found = std::ranges::find_if(
      outputs, [](const std::string& output) { return output.ends_with(".trace"); });
  return found == outputs.end() ? "" : *found;
}

std::string live_text(const Moment& now) {
  std::string text = format_fixed(now.seconds, 0) + " s   RSS " + bytes_text(now.level.rss) +
                     "   heap " + bytes_text(now.level.anon) + "   mapped files " +
                     bytes_text(now.level.file);
  if (now.group_page_cache)
    text += "   page cache of the group " + bytes_text(now.group_page_cache);
  return text + "   " + grouped(now.processes) + (now.processes == 1 ? " process" : " processes");
}

ProfileOptions profile_options(const ProfileWords& words, int pid, LiveLine* line) {
  ProfileOptions options;
  options.pid = pid;
  options.interval_s = words.interval_s.value_or(0);
  options.children = !words.no_children;
  options.watch_files = words.watch;
  options.trace_path = first_trace(words.outputs);  // readable even if we are killed
  if (words.json) return options;
  options.on_reading = [line](const Moment& now) {
    if (line->is_due()) line->show(live_text(now));
  };
  return options;
}

// For CI. An unknown peak fails too, because it may have been above the limit.
int check_peak(const Recording& recording, const ProfileWords& words) {
  if (words.fail_above.empty()) return kDone;
  const Bytes peak = recording.peak().rss;
  if (peak && *peak <= parse_bytes(words.fail_above)) return kDone;
  tell("profile", "--fail-above " + words.fail_above + ": the peak RSS is " +
                      (peak ? bytes_text(peak) : "unknown, so it may be above the limit"));
  return kFailed;
}

// Writes the reports and prints the summary; returns the exit code of these steps alone.
int finish(const Recording& recording, const ProfileWords& words, bool beside_program) {
  const int saved = save_all(recording, words.outputs);
  if (words.json) {
    print(json_of(recording, words));
  } else if (beside_program) {
    print_error(text_of(recording, words, error_output()));  // stdout belongs to the program
  } else {
    print(text_of(recording, words, output()));
  }
  return std::max(saved, check_peak(recording, words));
}

int stop(Profile& profile, std::optional<int> exit_code) {
  try {
    profile.stop(exit_code);
  } catch (...) {  // the trace file is incomplete, but the recording in memory is whole
    return tell_failure("profile");
  }
  return kDone;
}

int profile_program(const Call& call, const ProfileWords& words) {
  std::optional<LiveLine> line(std::in_place);
  std::optional<Profile> profile;
  const CommandEnd end = run_command({.arguments = call.command, .variables = {}}, [&](int pid) {
    ProfileOptions options = profile_options(words, pid, &*line);
    options.command = call.command;
    profile.emplace(options);
  });
  if (!end.error.empty()) {
    tell("profile", end.error);
    return end.exit_code;
  }
  const int stopped = stop(*profile, end.exit_code);
  line.reset();
  const int finished = finish(profile->recording(), words, true);
  return end.exit_code != 0 ? end.exit_code : std::max(stopped, finished);
}

Profile attach(const ProfileOptions& options) {
  try {
    return Profile(options);
  } catch (const IoError& error) {
    if (error.err != ESRCH) throw;
    throw std::invalid_argument("--pid " + std::to_string(options.pid) +
                                ": no such process, or /proc hides it (hidepid)");
  }
}

// Runs until the process ends or Ctrl-C is pressed. The process is not ours: Ctrl-C leaves it
// running.
int profile_process(const ProfileWords& words) {
  const StopSignals signals;
  std::optional<LiveLine> line(std::in_place);
  Profile profile = attach(profile_options(words, *words.pid, &*line));
  while (!profile.ended() && !signals.came()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int stopped = stop(profile, std::nullopt);
  line.reset();
  return std::max(stopped, finish(profile.recording(), words, false));
}

void check_words(const Call& call, const ProfileWords& words) {
  const int subjects =
      (call.command.empty() ? 0 : 1) + (words.trace.empty() ? 0 : 1) + (words.pid ? 1 : 0);
  if (subjects == 0) {
    throw std::invalid_argument(
        "no program was given: name one, as in lowtide profile python train.py");
  }
  if (subjects > 1) {
    throw std::invalid_argument("name only one of these: a program, a recording or --pid");
  }
  if (words.pid && *words.pid <= 0) {
    throw std::invalid_argument("--pid " + std::to_string(*words.pid) +
                                ": expected a number above 0");
  }
  const double interval_s = words.interval_s.value_or(1);
  if (!(interval_s >= 0.001 && interval_s <= 3600)) {  // also refuses NaN
    throw std::invalid_argument("--interval: expected seconds from 0.001 to 3600, found " +
                                format_fixed(interval_s, 4));
  }
  if (!words.fail_above.empty()) (void)parse_size(words.fail_above, "--fail-above");
  for (const std::string& output : words.outputs) check_output(output);
}

}  // namespace

Action add_profile(CLI::App& app) {
  const auto words = std::make_shared<ProfileWords>();
  app.add_option(
         "TRACE", words->trace,
         "A recording to report on, if the first word ends in .trace, .dat (mprof) or .json. Any "
         "other first word is the program, and all words after it are its arguments; write -- "
         "before a program whose name has one of these suffixes")
      ->type_name("");
  app.add_option("-o,--output", words->outputs,
                 "Write the report as .html, .svg, .json, .dat (mprof) or .trace; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);  // one per -o: the next word may be the program
  app.add_option("--pid", words->pid,
                 "Watch a running process and its descendants, until it ends or you press Ctrl-C")
      ->type_name("PID");
  app.add_option("--watch", words->watch,
                 "Report how much of this file is in the page cache, even if nothing maps it; may "
                 "be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option(
         "--fail-above", words->fail_above,
         "Exit with 1 if the peak RSS, summed over the processes, exceeds this size, such as 2GiB")
      ->type_name("SIZE");
  app.add_option("--interval", words->interval_s,
                 "Seconds between readings; chosen automatically if not given")
      ->type_name("S");
  app.add_flag("--no-children", words->no_children,
               "Watch only the program itself, not the processes it starts");
  app.add_flag("--json", words->json, "Print one JSON object as the last line of stdout");
  return [words](const Call& call) {
    check_words(call, *words);
    if (words->pid) return profile_process(*words);
    if (!call.command.empty()) return profile_program(call, *words);
    return finish(Recording::load(words->trace), *words, false);
  };
}

}  // namespace lowtide::cli
