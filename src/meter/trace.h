// trace.h - all readings of one run, in memory and as a file that survives a killed profiler.
//
// The file is text, one record a line, only ever appended to: a header with the format's number,
// then readings and marks as they come, then the ending. Whatever was written up to a kill is
// readable; a last line without its end is left out and told (`cut`).
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
      exit_code;  // as a shell tells it: 128 + n for signal n; empty: not a command of ours
  double cost_cpu_seconds = 0;  // what the sampling itself took
  friend bool operator==(const Ending&, const Ending&) = default;
};

struct Trace {
  std::vector<std::string> command;  // empty: the process that profiles itself
  int root_pid = 0;
  std::int64_t started_unix_ms = 0;
  std::string machine;  // "Linux 6.18, 2 cores, 24 GiB"
  std::vector<Reading> readings;
  std::vector<Mark> marks;
  std::optional<Ending> ending;  // empty: the profiler was killed, or it still runs
  bool cut = false;              // the last line was not whole
  friend bool operator==(const Trace&, const Trace&) = default;
};

// The records, each with its newline. header_line first.
[[nodiscard]] std::string header_line(const Trace& trace);
[[nodiscard]] std::string reading_line(const Reading& reading);
[[nodiscard]] std::string mark_line(const Mark& mark);
[[nodiscard]] std::string ending_line(const Ending& ending);
// All of them; parse_trace gives the trace back.
[[nodiscard]] std::string trace_text(const Trace& trace);

// Readings come back in order of time; all seconds are from 0 to 1e12. Throws FormatError
// with path and line: no trace, a newer format, a bad line before the last.
[[nodiscard]] Trace parse_trace(std::string_view text, const std::string& path);

}  // namespace lowtide
