// lives.h - each process of a trace over its own life: what it held, and whether it leaks.
//
// A tree whose workers end just before their parent shrinks at its end, however much they leaked.
// So every process is judged by itself, from the end of its start-up to the last reading before its
// memory was released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"
#include "verdict/trend.h"

namespace lowtide {

struct Life {
  int pid = 0;
  int parent = 0;
  std::uint64_t start_ticks = 0;
  std::string name;                 // what it ran last
  double begin_s = 0, end_s = 0;    // the first and the last reading with this process
  bool ended = false;               // before the trace ended
  bool lasting = false;             // it ran for a third of the run; otherwise it is not judged
  std::vector<Point> rss;           // over its whole life, where known
  Course heap;                      // anon and swap, after start-up and before its final release
  std::optional<Trend> heap_trend;  // empty: too few readings, or not lasting
  bool leaks = false;
  // The last reading before its memory only fell until it was gone (a program that ends frees what
  // it holds); that fall takes at most a tenth of its life.
  std::size_t last_whole = 0;
};

// In the order in which they were first seen.
[[nodiscard]] std::vector<Life> lives_of(const Trace& trace);

// The reading that counts as the end of a run: the last one in which all lasting processes still
// held their memory. Later readings, at most a quarter of the run, are left out only if memory then
// stays below it. Requires a reading.
[[nodiscard]] std::size_t last_whole(const Trace& trace, const std::vector<Life>& lives);

// "python (pid 12)"; empty for the command of a .dat, which has neither name nor pid.
[[nodiscard]] std::string process_text(const std::string& name, int pid);

}  // namespace lowtide
