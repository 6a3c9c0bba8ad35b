// process.h - what /proc tells about one process, ours or another's.
//
// Every call reads anew; a process may end between two of them. Nothing throws: what is not told
// is unknown and says why. Costs 5 to 20 us a file. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/limits.h"
#include "os/told.h"

namespace lowtide {

// /proc/PID/stat, which every user may read.
struct ProcessStat {
  int pid = 0;
  int parent = 0;
  char state = '?';      // 'Z': ended, and its parent has not asked yet
  bool exiting = false;  // its first thread is on its way out, and has no memory any more
  std::string name;      // comm: any bytes but 0, at most 15
  std::uint64_t start_ticks = 0;
  std::uint64_t minor_faults = 0, major_faults = 0;
  std::uint64_t threads = 0;
};
// `gone`, when given, tells whether it is not there, or hidden: not where it only cannot be read
// now (too many open files).
[[nodiscard]] Told<ProcessStat> read_stat(const SystemRoot& root, int pid, bool* gone = nullptr);

// /proc/PID/status, bytes. A line that is missing is unknown: the kernel does not count it, or the
// process has no memory any more. Where only its first thread has ended, another one tells.
struct ProcessMemory {
  ToldBytes rss;  // VmRSS: the sum of the next three, and all that kernels before 4.5 tell
  ToldBytes anon, file, shmem;
  ToldBytes page_tables, swap;
};
[[nodiscard]] ProcessMemory read_memory(const SystemRoot& root, int pid);

// /proc/PID/io since the process began; only for processes that we may trace.
struct ProcessIo {
  ToldBytes disk_bytes;   // read_bytes: what came from a device
  ToldBytes asked_bytes;  // rchar: what read calls were given
};
[[nodiscard]] ProcessIo read_io(const SystemRoot& root, int pid);

// Pss of /proc/PID/smaps_rollup. The kernel walks all pages: milliseconds for gigabytes.
[[nodiscard]] ToldBytes read_pss(const SystemRoot& root, int pid);

// The words it was started with; empty where that is not told, and for a process that ends.
[[nodiscard]] std::vector<std::string> read_command_line(const SystemRoot& root, int pid);

// Every process that /proc shows, in no order.
[[nodiscard]] std::vector<int> list_processes(const SystemRoot& root);
// The children of all threads of a process; unknown where the kernel has no task/TID/children
// (CONFIG_PROC_CHILDREN): then only the parents of all processes tell.
[[nodiscard]] Told<std::vector<int>> read_children(const SystemRoot& root, int pid);

// Whether orphans below us become our children (PR_SET_CHILD_SUBREAPER).
[[nodiscard]] bool adopts_orphans();

// "Linux 6.18, 2 cores, 24 GiB"
[[nodiscard]] std::string machine_text(const SystemRoot& root = {});

// CPU time of the calling thread.
[[nodiscard]] std::uint64_t thread_cpu_ns();
[[nodiscard]] std::int64_t unix_time_ms();

// Why a file of /proc/PID could not be read, from its errno.
[[nodiscard]] std::string proc_reason(const SystemRoot& root, int pid, const std::string& file,
                                      int err);

}  // namespace lowtide
