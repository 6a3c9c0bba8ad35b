#include "meter/tree.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "lowtide/error.h"
#include "system/process.h"

namespace lowtide {
namespace {

// The leading thread of a program may end while its other threads go on.
bool lives(const ProcessStat& process) {
  const bool over = process.exiting || process.state == 'Z' || process.state == 'X';
  return !over || process.threads > 1;
}

}  // namespace

Tree::Tree(SystemRoot root, int root_pid) : root_(std::move(root)), root_pid_(root_pid) {
  const Known<ProcessStat> first = read_stat(root_, root_pid);
  if (!first) {
    throw IoError(ESRCH, "profile", root_.proc + "/" + std::to_string(root_pid), std::nullopt,
                  first.why);
  }
  root_start_ = first->start_ticks;
  ours_ = first->parent == process_id();
  if (lives(*first)) members_.emplace(root_pid, root_start_);
}

std::vector<ProcessStat> Tree::look(bool discover) {
  std::vector<ProcessStat> alive;
  follow(&alive);
  if (discover && !(has_children_files_ && walk(&alive))) scan(&alive);
  std::sort(alive.begin(), alive.end(),
            [](const ProcessStat& a, const ProcessStat& b) { return a.pid < b.pid; });
  return alive;
}

void Tree::follow(std::vector<ProcessStat>* alive) {
  for (auto member = members_.begin(); member != members_.end();) {
    bool gone = false;
    const Known<ProcessStat> now = read_stat(root_, member->first, &gone);
    const bool same = now && now->start_ticks == member->second && lives(*now);
    if (same) alive->push_back(*now);
    // A process that cannot be read now, because we have too many open files, is tried again.
    const bool ended = gone || (now && !same);
    member = ended ? members_.erase(member) : std::next(member);
  }
}

void Tree::admit(const ProcessStat& process, std::vector<ProcessStat>* alive) {
  if (!members_.emplace(process.pid, process.start_ticks).second) return;
  alive->push_back(process);
}

// False if the kernel does not list children.
bool Tree::walk(std::vector<ProcessStat>* alive) {
  for (std::size_t i = 0; i < alive->size(); ++i) {  // the list grows during the walk
    const Known<std::vector<int>> children = read_children(root_, (*alive)[i].pid);
    if (!children) {
      // The process may just have ended, which says nothing about the kernel.
      if (!read_stat(root_, (*alive)[i].pid)) continue;
      has_children_files_ = false;
      return false;
    }
    for (const int pid : *children) {
      const Known<ProcessStat> child =
          members_.contains(pid) ? Known<ProcessStat>{} : read_stat(root_, pid);
      if (child && lives(*child)) admit(*child, alive);
    }
  }
  if (!ours_ || !adopts_orphans()) return true;
  const Known<std::vector<int>> adopted = read_children(root_, process_id());
  const std::size_t before = alive->size();
  for (const int pid : adopted ? *adopted : std::vector<int>{}) {
    const Known<ProcessStat> child =
        members_.contains(pid) ? Known<ProcessStat>{} : read_stat(root_, pid);
    if (child && lives(*child) && is_orphan(*child)) admit(*child, alive);
  }
  return before == alive->size() || walk(alive);
}

// A process that became our child when its parent ended. An older child of ours is not in the tree.
bool Tree::is_orphan(const ProcessStat& process) const {
  return ours_ && process.parent == process_id() && process.start_ticks >= root_start_ &&
         adopts_orphans();
}

void Tree::scan(std::vector<ProcessStat>* alive) {
  // A stranger's pid may be reused by one of ours, so all are read again now and then.
  constexpr int kForgetAfter = 64;
  if (++scans_ % kForgetAfter == 0) strangers_.clear();
  std::vector<int> pids = list_processes(root_);
  std::sort(pids.begin(), pids.end());
  std::vector<ProcessStat> fresh;
  for (const int pid : pids) {
    if (members_.contains(pid) || strangers_.contains(pid)) continue;
    Known<ProcessStat> process = read_stat(root_, pid);
    if (process && lives(*process)) fresh.push_back(std::move(*process.value));
  }
  std::set<int> still;
  std::set_intersection(strangers_.begin(), strangers_.end(), pids.begin(), pids.end(),
                        std::inserter(still, still.end()));
  strangers_ = std::move(still);
  // Parents usually have the lower pid, but pids wrap, so repeat until a round admits no process.
  for (bool grown = true; grown;) {
    grown = false;
    for (ProcessStat& process : fresh) {
      if (process.pid == 0) continue;
      if (!members_.contains(process.parent) && !is_orphan(process)) continue;
      admit(process, alive);
      process.pid = 0;
      grown = true;
    }
  }
  for (const ProcessStat& process : fresh) {
    if (process.pid != 0) strangers_.insert(process.pid);
  }
}

}  // namespace lowtide
