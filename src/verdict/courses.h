// courses.h - the basis of the verdict: a trace condensed to how each kind of memory moved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"
#include "verdict/lives.h"
#include "verdict/trend.h"

namespace lowtide {

struct GrownFile {
  std::string path;
  std::uint64_t rise = 0;  // of the mapped bytes, since the trace began
  std::uint64_t peak = 0;
  bool library = false;  // code: every program maps it, and it is never the culprit
};

// The moment when the sum of RSS exceeded that of PSS by most.
struct SharedMoment {
  std::uint64_t rss = 0, pss = 0;
  std::size_t processes = 0;
};

// The courses of processes are sums over the tree, from after start-up to the end of the run
// (last_whole); those of the page cache continue to the last reading.
struct Courses {
  std::size_t readings = 0;  // those in which a process was seen
  double seconds = 0;        // the time they span
  std::vector<Life> lives;   // one per process
  Course processes;          // how many were running
  Course heap;               // anon, plus what is swapped out
  Course file, page_tables, pss;
  Course shmem;       // of the largest process: a sum would count the same pages repeatedly
  Course cached;      // the page cache of the files, as far as it was read
  Course group_file;  // the page cache charged to the memory group
  Course rss;
  std::vector<GrownFile> files;  // the largest rise first
  std::optional<SharedMoment> shared;
  std::vector<std::string> unknown;

  // Growth of mapped files other than libraries; without a list, of all mapped files after
  // start-up.
  [[nodiscard]] std::uint64_t mapped_rise() const;
};

[[nodiscard]] Courses courses_of(const Trace& trace);

// Whether it is code or belongs to it, judged by its name.
[[nodiscard]] bool is_library(const std::string& path);

}  // namespace lowtide
