// facts.h - what the verdict rests on: a trace condensed to how each kind of memory moved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/lives.h"
#include "meter/trace.h"
#include "meter/trend.h"

namespace lowtide {

struct GrownFile {
  std::string path;
  std::uint64_t rise = 0;  // of what is mapped, since the trace began
  std::uint64_t peak = 0;
  bool library = false;  // code: mapped by every program, and not what anyone looks for
};

// The moment at which the sum of RSS was farthest above that of PSS.
struct SharedMoment {
  std::uint64_t rss = 0, pss = 0;
  std::size_t processes = 0;
};

// The courses of processes are sums over the tree, from the start-up to the end of the run
// (last_whole); those of the page cache go on to the last reading.
struct Facts {
  std::size_t readings = 0;  // in which a process was seen
  double seconds = 0;        // of them
  std::vector<Life> lives;   // of each process by itself
  Course processes;          // how many there were
  Course heap;               // anon, and what of it is swapped out
  Course file, page_tables, pss;
  Course shmem;       // the largest process: a sum would count the same pages again
  Course cached;      // the page cache of the files, as far as it was asked
  Course group_file;  // the page cache that is charged to the memory group
  Course rss;
  std::vector<GrownFile> files;  // the largest rise first
  std::optional<SharedMoment> shared;
  std::vector<std::string> unknown;

  // Growth of mapped files that are no libraries; where no list tells, of all after the start-up.
  [[nodiscard]] std::uint64_t mapped_rise() const;
};

[[nodiscard]] Facts facts_of(const Trace& trace);

// Code, or what comes with it: by its name.
[[nodiscard]] bool is_library(const std::string& path);

}  // namespace lowtide
