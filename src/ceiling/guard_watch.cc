#include "ceiling/guard_watch.h"

#include <algorithm>

#include "lowtide/bytes.h"
#include "system/kernel.h"
#include "system/maps.h"
#include "system/process.h"

namespace lowtide::ceiling {

namespace {

constexpr int kLooks = 2;  // a single one may fall right before a trim
constexpr std::size_t kMostProcesses = 1000;

std::vector<int> tree_of(int pid) {
  std::vector<int> tree{pid};
  for (std::size_t i = 0; i < tree.size() && tree.size() < kMostProcesses; ++i) {
    if (const auto children = read_children({}, tree[i])) {
      tree.insert(tree.end(), children->begin(), children->end());
    }
  }
  return tree;
}

// Such files are mapped as code, which guard leaves alone.
bool is_library(const std::string& path) {
  return path.ends_with(".so") || path.find(".so.") != std::string::npos;
}

}  // namespace

GuardWatch::GuardWatch(std::uint64_t limit_bytes, const Page& page)
    : limit_bytes_(limit_bytes), page_(page), filters_(call_filters({}, process_id())) {}

void GuardWatch::look(int pid) {
  for (const int one : tree_of(pid)) look_at(one);
}

bool GuardWatch::explained(int pid) const {
  for (const Slot& slot : page_.slots) {
    if (slot.pid.load() == pid) return (slot.state.load() & (Slot::kKept | Slot::kUndone)) != 0;
  }
  return false;
}

// RssFile is cheap to read, so the maps, which are not, are read only when it is large. It includes
// libraries and the program itself, and the limit is soft, hence the quarter on top.
void GuardWatch::look_at(int pid) {
  const std::uint64_t much = limit_bytes_ + limit_bytes_ / 4;
  const Figure file = read_memory({}, pid).file;
  const bool look = file && *file > much && !explained(pid);
  const auto maps = look ? read_maps({}, pid) : Known<ProcessMaps>{};
  std::map<std::string, std::uint64_t> bytes_of;
  bool covered = false;
  if (maps) {
    for (const FileMap& map : maps->files) {
      covered = covered || map.path.find("liblowtide_guard") != std::string::npos;
      if (!is_library(map.path)) bytes_of[map.path] += map.mapped;
    }
  }
  for (auto& [key, held] : held_) {
    if (key.first == pid && held.looks < kLooks && bytes_of[key.second] <= much) held.looks = 0;
  }
  for (const auto& [path, bytes] : bytes_of) {
    if (bytes <= much) continue;
    Held& held = held_[{pid, path}];
    ++held.looks;
    held.bytes = std::max(held.bytes, bytes);
    held.covered = covered;
    held.restricted = call_filters({}, pid) > filters_;
    if (const auto stat = read_stat({}, pid)) held.program = stat->name;
  }
}

std::vector<std::string> GuardWatch::found() const {
  std::map<std::pair<std::string, std::string>, Held> by_name;  // many workers run the same program
  for (const auto& [key, held] : held_) {
    if (held.looks < kLooks) continue;
    Held& worst = by_name[{held.program, key.second}];
    if (held.bytes > worst.bytes) worst = held;
  }
  const auto why = [](const Held& held) {
    if (!held.covered) return ": the guard's library was not loaded into it";
    if (held.restricted) return ": it restricts its system calls (seccomp)";
    return ": mapped without libc, or read faster than trims can follow";
  };
  std::vector<std::string> found;
  for (const auto& [key, held] : by_name) {
    found.push_back(key.first + " held " + format_bytes(held.bytes) + " of " + key.second +
                    why(held));
  }
  return found;
}

}  // namespace lowtide::ceiling
