// lives.h - each process of a trace over its own life: what it held, and whether it leaks.
//
// A tree whose workers end a moment before their parent shrinks at its end, whatever they leaked.
// So every process is judged by itself, from its own start-up to the last reading in which it was
// whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"
#include "meter/trend.h"

namespace lowtide {

struct Life {
  int pid = 0;
  int parent = 0;
  std::uint64_t start_ticks = 0;
  std::string name;                 // what it ran last
  double begin_s = 0, end_s = 0;    // the first and the last reading that saw it
  bool ended = false;               // within the trace
  bool lasting = false;             // it was there for a third of the run: only then it is judged
  std::vector<Point> rss;           // all of its life, where known
  Course heap;                      // anon and swap, after its start-up and while it was whole
  std::optional<Trend> heap_trend;  // empty: too few readings, or not lasting
  bool leaks = false;
  // The reading before its memory only fell until it was gone (a program that ends frees what it
  // has); that fall is at most a tenth of its life.
  std::size_t last_whole = 0;
};

// In the order in which they were first seen.
[[nodiscard]] std::vector<Life> lives_of(const Trace& trace);

// The reading that is the end of a run: the last one in which the processes that lasted were all
// whole. Later ones, at most a quarter of the run, are left out only if memory then stays below it.
// Requires a reading.
[[nodiscard]] std::size_t last_whole(const Trace& trace, const std::vector<Life>& lives);

// "python (pid 12)"; empty for the command of a .dat, which tells neither name nor pid.
[[nodiscard]] std::string process_text(const std::string& name, int pid);

}  // namespace lowtide
