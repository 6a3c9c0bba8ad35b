// sampler.h - takes readings of a process tree within a limited share of CPU time.
//
// During the first two seconds readings are frequent, from 1 ms apart, so that short programs are
// seen. Later the gap is 100 ms, or whatever keeps the total under 1 % of a core. The expensive
// parts (new processes, PSS, maps and page cache, the group) are read by rations of their own,
// within the same 1 %. At the beginning 23 ms of CPU time may be spent at once, so a run of less
// than 10 s can cost more than 1 %. Use it from one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "meter/ration.h"
#include "meter/reading.h"
#include "meter/tree.h"

namespace lowtide {

struct SamplerOptions {
  SystemRoot root;
  int pid = 0;            // 0: this process
  bool children = true;   // its descendants too
  double interval_s = 0;  // 0: as above; otherwise the gap between readings, whatever they and the
                          // reads of the files cost
  std::vector<std::string> watch_files;
  std::uint64_t (*cpu_ns)() = thread_cpu_ns;
};

class Sampler {
 public:
  // Throws IoError(ESRCH) if there is no such process.
  explicit Sampler(SamplerOptions options);

  // Takes a reading, `seconds` after the beginning. The last one of a run includes every part that
  // its share can afford, even if it is not due, and the watched files whatever they cost.
  [[nodiscard]] Reading take(double seconds, bool last = false);
  // How long to wait before the next reading.
  [[nodiscard]] double wait_s(double seconds) const;

  [[nodiscard]] double cost_cpu_s() const { return cost_s_; }  // of all readings
  [[nodiscard]] bool ended() const { return tree_.ended(); }   // no process is left
  [[nodiscard]] int root_pid() const { return tree_.root_pid(); }

 private:
  template <typename Work>
  void timed(Ration* ration, double seconds, Work work);
  void forgive_ending(ProcessReading* process) const;
  void take_pss(Reading* reading) const;
  void take_files(Reading* reading) const;

  const SamplerOptions options_;
  Tree tree_;
  Ration plain_, discover_, pss_, files_, group_;
  double cost_s_ = 0;
};

}  // namespace lowtide
