// sampler.h - takes readings of a tree, each no dearer than it may be.
//
// The first two seconds are looked at often, from 1 ms on, so that short programs are seen; later
// the gap is 100 ms or what keeps the whole under 1 % of a core. What is dear (new processes, PSS,
// maps and page cache, the group) is asked at its own pace, within the same 1 %. In the beginning
// 23 ms of CPU may be spent at once: a run of less than 10 s can cost more than 1 %. One thread at
// a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "meter/reading.h"
#include "meter/tree.h"
#include "meter/turn.h"

namespace lowtide {

struct SamplerOptions {
  SystemRoot root;
  int pid = 0;            // 0: this process
  bool children = true;   // all below it too
  double interval_s = 0;  // 0: as above; else the gap between readings, whatever they cost and
                          // what their looks at the files cost
  std::vector<std::string> watch_files;
  std::uint64_t (*cpu_ns)() = thread_cpu_ns;
};

class Sampler {
 public:
  // Throws IoError(ESRCH) where no such process is seen.
  explicit Sampler(SamplerOptions options);

  // What is seen now, `seconds` after the beginning. The last one of a run asks for everything
  // that its share allows, though it is not its turn, and for files to watch whatever that costs.
  [[nodiscard]] Reading take(double seconds, bool last = false);
  // How long to wait then before the next one.
  [[nodiscard]] double wait_s(double seconds) const;

  [[nodiscard]] double cost_cpu_s() const { return cost_s_; }  // of all readings
  [[nodiscard]] bool ended() const { return tree_.ended(); }   // nobody is left to look at
  [[nodiscard]] int root_pid() const { return tree_.root_pid(); }

 private:
  template <typename Work>
  void timed(Turn* turn, double seconds, Work work);
  void forgive_ending(ProcessReading* process) const;
  void take_pss(Reading* reading) const;
  void take_files(Reading* reading) const;

  const SamplerOptions options_;
  Tree tree_;
  Turn plain_, discover_, pss_, files_, group_;
  double cost_s_ = 0;
};

}  // namespace lowtide
