// trace.h - all readings of one run, in memory and as a file that survives a killed profiler.
//
// The file is text with one record per line and is only appended to: a header with the format
// number, then readings and marks as they arrive, then the ending. Everything written before a kill
// stays readable; an incomplete last line is left out and reported (`cut`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meter/reading.h"

namespace lowtide {

struct Mark {  // something that happened: "epoch 1", "step 5000"
  double seconds = 0;
  std::string text;
  friend bool operator==(const Mark&, const Mark&) = default;
};

struct Ending {
  double seconds = 0;
  std::optional<int>
      exit_code;  // as in a shell: 128 + n for signal n; empty: not a command that we started
  double cost_cpu_seconds = 0;  // what the sampling itself took
  friend bool operator==(const Ending&, const Ending&) = default;
};

struct Trace {
  std::vector<std::string> command;  // empty: the process profiled itself
  int root_pid = 0;
  std::int64_t started_unix_ms = 0;
  std::string machine;  // "Linux 6.18, 2 cores, 24 GiB"
  std::vector<Reading> readings;
  std::vector<Mark> marks;
  std::optional<Ending> ending;  // empty: the profiler was killed, or is still running
  bool cut = false;              // the last line was incomplete
  friend bool operator==(const Trace&, const Trace&) = default;
};

// The records, each with its newline. The first is header_line.
[[nodiscard]] std::string header_line(const Trace& trace);
[[nodiscard]] std::string reading_line(const Reading& reading);
[[nodiscard]] std::string mark_line(const Mark& mark);
[[nodiscard]] std::string ending_line(const Ending& ending);
// All records; parse_trace restores the trace.
[[nodiscard]] std::string trace_text(const Trace& trace);

// Readings are returned in order of time; all seconds are from 0 to 1e12. Throws FormatError with
// path and line if it is not a trace, has a newer format, or has a bad line before the last.
[[nodiscard]] Trace parse_trace(std::string_view text, const std::string& path);

}  // namespace lowtide
