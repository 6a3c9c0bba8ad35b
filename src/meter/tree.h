// tree.h - a process and all below it, followed while they come and go.
//
// A process is named by its pid and its start: a pid that comes again is another process. Who was
// once seen is followed to its end, also when its parent ended before it. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "os/process.h"

namespace lowtide {

class Tree {
 public:
  // Throws IoError(ESRCH) where no such process is seen.
  Tree(SystemRoot root, int root_pid);

  // The processes of the tree that live now, by pid. With `discover` new ones are looked for:
  // through task/TID/children where the kernel has them, else among all processes, of which only
  // those not seen before cost a read. Processes that ended and wait for their parent are left out.
  [[nodiscard]] std::vector<ProcessStat> look(bool discover);

  [[nodiscard]] int root_pid() const { return root_pid_; }
  // Nobody of the tree lived at the last look.
  [[nodiscard]] bool ended() const { return members_.empty(); }

 private:
  void follow(std::vector<ProcessStat>* alive);
  bool walk(std::vector<ProcessStat>* alive);
  void scan(std::vector<ProcessStat>* alive);
  void admit(const ProcessStat& process, std::vector<ProcessStat>* alive);
  [[nodiscard]] bool is_orphan(const ProcessStat& process) const;

  const SystemRoot root_;
  const int root_pid_;
  std::uint64_t root_start_ = 0;
  bool ours_ = false;                     // the root is a child of this process
  bool has_children_files_ = true;        // until the kernel says no
  std::map<int, std::uint64_t> members_;  // pid -> start_ticks
  std::set<int> strangers_;               // seen, and not of the tree
  int scans_ = 0;
};

}  // namespace lowtide
