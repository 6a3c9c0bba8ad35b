#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/quote.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "meter/sums.h"
#include "meter/trace_fields.h"
#include "report/report.h"

namespace lowtide {
namespace {

constexpr double kDatUnitBytes = 1 << 20;
constexpr int kRoot = 0;  // a .dat does not contain the pid of the command itself
constexpr const char* kReason = "memory_profiler records only RSS";

std::string mib(std::uint64_t bytes) {
  return format_fixed(static_cast<double>(bytes) / kDatUnitBytes, 6);
}

// Joins a command as mprof does. mprof has no escapes, so quotes and newlines inside are lost.
std::string joined(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& argument : command) {
    const bool blanks = argument.empty() || argument.find_first_of(" \t") != std::string::npos;
    line += (line.empty() ? "" : " ") + (blanks ? "'" + argument + "'" : argument);
  }
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::vector<std::string> split_command(std::string_view line) {
  std::vector<std::string> command;
  while (!line.empty()) {
    const bool quoted = line.front() == '\'' && line.find('\'', 1) != std::string_view::npos;
    const std::size_t end = quoted ? line.find('\'', 1) : line.find(' ');
    const std::string_view word = line.substr(0, end).substr(quoted ? 1 : 0);
    if (!word.empty() || quoted) command.emplace_back(word);
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return command;
}

// mprof splits lines at blanks, so a name must not contain any.
std::string one_word(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }, '_');
  return text.empty() ? "_" : text;
}

struct BadDatLine {
  std::string why;
};

// Reads the lines of one .dat into a trace.
class DatReader {
 public:
  void line(std::string_view text) {
    const std::string_view kind = take(text);
    if (kind == "CMDLINE") trace_.command = split_command(text);
    if (kind == "MEM") return memory(text);
    if (kind == "CHLD") return child(text);
    if (kind == "FUNC") return function(text);
  }

  // Times become relative to the first reading; FUNC lines may come before it.
  [[nodiscard]] Trace end() && {
    if (trace_.readings.empty()) return std::move(trace_);
    const double first = trace_.readings.front().seconds;
    trace_.started_unix_ms = static_cast<std::int64_t>(std::floor(first * 1000));
    const double started = static_cast<double>(trace_.started_unix_ms) / 1000;
    const auto since = [&](double unix_seconds) { return std::max(0.0, unix_seconds - started); };
    double before = 0;  // a .dat uses the wall clock, which may be set back
    for (Reading& reading : trace_.readings) {
      before = reading.seconds = std::max(before, since(reading.seconds));
    }
    for (Mark& mark : trace_.marks) mark.seconds = since(mark.seconds);
    std::ranges::stable_sort(trace_.marks, {}, &Mark::seconds);
    return std::move(trace_);
  }

 private:
  static std::string_view take(std::string_view& text) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  }

  static double number(std::string_view& text) {
    const std::string_view word = take(text);
    double value = 0;
    const auto [end, err] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (err != std::errc{} || end != word.data() + word.size() || !(value >= 0 && value < 1e12)) {
      throw BadDatLine{"expected a number, found " + excerpt(word)};
    }
    return value;
  }

  // Pages are whole KiB; a byte more or less is the rounding error of six decimals of a MiB.
  static std::uint64_t bytes(std::string_view& text) {
    const double value = std::round(number(text) * kDatUnitBytes);
    const double kib = std::round(value / 1024) * 1024;
    return static_cast<std::uint64_t>(std::abs(kib - value) <= 1 ? kib : value);
  }

  void add_reading(double unix_seconds) {
    trace_.readings.push_back({.seconds = unix_seconds, .processes = {}, .files = {}, .group = {}});
  }

  void add_process(int pid, std::uint64_t rss) {
    ProcessReading process;
    process.pid = pid;
    visit_process(process, [](Figure& figure) { figure = Figure::unknown(kReason); });
    process.rss_alone = rss;
    trace_.readings.back().processes.push_back(std::move(process));
  }

  void memory(std::string_view text) {
    const std::uint64_t rss = bytes(text);
    add_reading(number(text));
    add_process(kRoot, rss);
  }

  // Belongs to the preceding MEM line, unless that already has this child.
  void child(std::string_view text) {
    const std::string_view word = take(text);
    int pid = 0;
    const auto [end, err] = std::from_chars(word.data(), word.data() + word.size(), pid);
    if (err != std::errc{} || end != word.data() + word.size() || pid <= kRoot) {
      throw BadDatLine{"expected the pid of a child, found " + excerpt(word)};
    }
    const std::uint64_t rss = bytes(text);
    const double unix_seconds = number(text);
    const auto same = [&](const ProcessReading& process) { return process.pid == pid; };
    if (trace_.readings.empty() || std::ranges::any_of(trace_.readings.back().processes, same)) {
      add_reading(unix_seconds);
    }
    add_process(pid, rss);
  }

  void function(std::string_view text) {
    const std::string name(take(text));
    number(text);
    const double start = number(text);
    number(text);
    const double end = number(text);
    if (start >= end) return trace_.marks.push_back({start, name});
    trace_.marks.push_back({start, name + " begins"});
    trace_.marks.push_back({end, name + " ends"});
  }

  Trace trace_;
};

}  // namespace

std::string dat_report(const Trace& trace) {
  const double started = static_cast<double>(trace.started_unix_ms) / 1000;
  std::string text = "CMDLINE " + joined(trace.command) + "\n";
  std::uint64_t rss_before = 0;
  auto mark = trace.marks.begin();
  const auto add_marks_until = [&](double seconds) {
    for (; mark != trace.marks.end() && mark->seconds <= seconds; ++mark) {
      const std::string point =
          " " + mib(rss_before) + " " + format_fixed(started + mark->seconds, 4);
      text += "FUNC " + one_word(mark->text) + point + point + " 0\n";
    }
  };
  for (const Reading& reading : trace.readings) {
    add_marks_until(reading.seconds);
    const std::string time = " " + format_fixed(started + reading.seconds, 4) + "\n";
    std::string others;
    for (const ProcessReading& process : reading.processes) {
      const auto rss = rss_of(process);
      if (!rss) continue;
      if (process.pid == trace.root_pid) {
        text += "MEM " + mib(*rss) + time;
        rss_before = *rss;
        continue;
      }
      others += "CHLD " + std::to_string(process.pid) + " " + mib(*rss) + time;
    }
    text += others;
  }
  add_marks_until(INFINITY);
  return text;
}

Trace parse_dat(std::string_view text, const std::string& path) {
  DatReader reader;
  bool cut = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    cut = end == std::string_view::npos;
    if (cut) break;
    try {
      reader.line(text.substr(0, end));
    } catch (const BadDatLine& bad) {
      throw FormatError(path + ": line " + std::to_string(number) + ": " + bad.why);
    }
    text.remove_prefix(end + 1);
  }
  Trace trace = std::move(reader).end();
  trace.cut = cut;
  if (trace.readings.empty()) {
    throw FormatError(path +
                      ": expected lines \"MEM <MiB> <seconds>\" as mprof writes them, "
                      "found none");
  }
  return trace;
}

}  // namespace lowtide
