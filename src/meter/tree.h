// tree.h - a process and its descendants, followed as they start and end.
//
// A process is identified by its pid and start time: a reused pid is another process. Once seen, a
// process is followed to its end, even if its parent ends first. Use it from one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "system/process.h"

namespace lowtide {

class Tree {
 public:
  // Throws IoError(ESRCH) if there is no such process.
  Tree(SystemRoot root, int root_pid);

  // The living processes of the tree, by pid. With `discover`, new ones are found: through
  // task/TID/children if the kernel has it, otherwise among all processes, where only those not
  // seen before cost a read. Processes that have ended but were not reaped are left out.
  [[nodiscard]] std::vector<ProcessStat> look(bool discover);

  [[nodiscard]] int root_pid() const { return root_pid_; }
  // No process of the tree was alive at the last look().
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
  bool has_children_files_ = true;        // until the kernel lacks them
  std::map<int, std::uint64_t> members_;  // pid -> start_ticks
  std::set<int> strangers_;               // seen before, and not in the tree
  int scans_ = 0;
};

}  // namespace lowtide
