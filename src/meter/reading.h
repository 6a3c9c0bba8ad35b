// reading.h - one look at a process tree, its files and its memory group.
//
// Sizes are bytes. A Reading says what was seen, never what it means: that is the verdict's work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/figure.h"

namespace lowtide {

// One process. (pid, start_ticks) names it: a pid that comes again is another process.
struct ProcessReading {
  int pid = 0;
  int parent = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string name;               // what it runs now: comm, changes with exec
  Figure anon, file, shmem;       // RssAnon, RssFile, RssShmem
  Figure page_tables, swap;       // VmPTE, VmSwap
  Figure pss;                     // smaps_rollup; asked rarely, unknown "not asked now" between
  Figure minor_faults, major_faults;
  Figure disk_bytes, asked_bytes;  // read_bytes and rchar of /proc/PID/io, since the process began
  Figure threads;
  // RSS where only the sum is known (memory_profiler's .dat, kernels before 4.5): then anon, file
  // and shmem are unknown.
  std::optional<std::uint64_t> rss_alone = std::nullopt;
  friend bool operator==(const ProcessReading&, const ProcessReading&) = default;
};

// One regular file that a process of the tree maps (or that the user asked to watch).
struct FileReading {
  std::string path;  // as /proc names it, " (deleted)" taken off
  bool deleted = false;
  std::uint64_t device = 0, inode = 0;
  Figure size;
  // Resident in the maps of the tree, summed over processes: Rss of smaps less the pages that a
  // private map copied, so that the sum over all files is RssFile.
  Figure mapped;
  Figure pss;     // the same, shared pages divided (Pss of smaps)
  Figure cached;  // in the page cache, whoever brought it there
  friend bool operator==(const FileReading&, const FileReading&) = default;
};

// The memory group (cgroup) of the root process.
struct GroupReading {
  std::string path;  // the folder it was read from
  int version = 0;   // 1 or 2
  Figure usage, anon, inactive_file, active_file;
  Figure working_set;  // usage - inactive_file: what kubelet evicts by
  Figure limit;        // the tightest over all ancestors; unknown "no limit" where there is none
  Figure limit_hits, oom_kills;
  friend bool operator==(const GroupReading&, const GroupReading&) = default;
};

struct Reading {
  double seconds = 0;  // since the trace began
  std::vector<ProcessReading> processes;
  // Only in readings that asked for it (smaps is dear): between two of them files are as before.
  std::optional<std::vector<FileReading>> files;
  std::optional<GroupReading> group;
  friend bool operator==(const Reading&, const Reading&) = default;
};

}  // namespace lowtide
