// reading.h - one reading of a process tree, its files and its memory group.
//
// Sizes are bytes. A Reading records what was seen; the verdict interprets it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/known.h"

namespace lowtide {

// The reason of a figure that was merely not read this time. It is read only now and then, and is
// not reported as unknown.
inline constexpr const char* kNotAsked = "not asked now";

// One process, identified by (pid, start_ticks): a reused pid is another process.
struct ProcessReading {
  int pid = 0;
  int parent = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string name;               // the program it currently runs (comm); changes with exec
  Figure anon, file, shmem;       // RssAnon, RssFile, RssShmem
  Figure page_tables, swap;       // VmPTE, VmSwap
  Figure pss;  // smaps_rollup; read rarely, in between unknown with the reason "not asked now"
  Figure minor_faults, major_faults;
  Figure disk_bytes,
      asked_bytes;  // read_bytes and rchar of /proc/PID/io, since the process started
  Figure threads;
  // RSS if only the sum is known (memory_profiler's .dat, kernels before 4.5); anon, file and shmem
  // are then unknown.
  std::optional<std::uint64_t> rss_alone = std::nullopt;
  friend bool operator==(const ProcessReading&, const ProcessReading&) = default;
};

// One regular file that a process of the tree maps, or that the user asked to watch.
struct FileReading {
  std::string path;  // as in /proc, without " (deleted)"
  bool deleted = false;
  std::uint64_t device = 0, inode = 0;
  Figure size;
  // Resident in the maps of the tree, summed over processes: Rss of smaps minus the pages that a
  // private map copied, so that the sum over all files is RssFile.
  Figure mapped;
  Figure pss;     // the same with shared pages divided among their users (Pss of smaps)
  Figure cached;  // in the page cache, whichever process loaded it
  friend bool operator==(const FileReading&, const FileReading&) = default;
};

// The memory group (cgroup) of the root process.
struct GroupReading {
  std::string path;  // the folder it was read from
  int version = 0;   // 1 or 2
  Figure usage, anon, inactive_file, active_file;
  Figure working_set;  // usage - inactive_file: the number by which kubelet evicts
  Figure limit;  // the tightest over all ancestors; unknown with the reason "no limit" if there is
                 // none
  Figure limit_hits, oom_kills;
  friend bool operator==(const GroupReading&, const GroupReading&) = default;
};

struct Reading {
  double seconds = 0;  // since the trace began
  std::vector<ProcessReading> processes;
  // Only in some readings, because smaps is expensive; in between, files are unchanged.
  std::optional<std::vector<FileReading>> files;
  std::optional<GroupReading> group;
  friend bool operator==(const Reading&, const Reading&) = default;
};

}  // namespace lowtide
