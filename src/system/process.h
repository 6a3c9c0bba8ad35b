// process.h - what /proc reports about one process, ours or another's.
//
// Every call reads again; a process may end between two calls. Nothing throws: a value that /proc
// does not report is unknown, with the reason. Costs 5 to 20 us per file. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/known.h"
#include "system/text_file.h"

namespace lowtide {

// /proc/PID/stat, which every user may read.
struct ProcessStat {
  int pid = 0;
  int parent = 0;
  char state = '?';      // 'Z': ended, but not yet reaped by its parent
  bool exiting = false;  // its first thread is exiting and has released its memory
  std::string name;      // comm: any bytes except 0, at most 15
  std::uint64_t start_ticks = 0;
  std::uint64_t minor_faults = 0, major_faults = 0;
  std::uint64_t threads = 0;
};
// `gone`, if given, reports whether the process is missing or hidden, as opposed to temporarily
// unreadable (too many open files).
[[nodiscard]] Known<ProcessStat> read_stat(const SystemRoot& root, int pid, bool* gone = nullptr);

// /proc/PID/status, in bytes. A missing line is unknown: the kernel does not count it, or the
// process has released its memory. If only its first thread has ended, another thread's file is
// read.
struct ProcessMemory {
  Figure rss;  // VmRSS: the sum of the next three; kernels before 4.5 report nothing else
  Figure anon, file, shmem;
  Figure page_tables, swap;
};
[[nodiscard]] ProcessMemory read_memory(const SystemRoot& root, int pid);

// /proc/PID/io since the process started; only for processes that we may trace.
struct ProcessIo {
  Figure disk_bytes;   // read_bytes: what was read from a device
  Figure asked_bytes;  // rchar: what read calls returned
};
[[nodiscard]] ProcessIo read_io(const SystemRoot& root, int pid);

// Pss of /proc/PID/smaps_rollup. The kernel walks all pages, which takes milliseconds per GB.
[[nodiscard]] Figure read_pss(const SystemRoot& root, int pid);

// Its command line; empty if unreadable, and for a process that is ending.
[[nodiscard]] std::vector<std::string> read_command_line(const SystemRoot& root, int pid);

// Every process that /proc shows, in no particular order.
[[nodiscard]] std::vector<int> list_processes(const SystemRoot& root);
// The children of all threads of a process; unknown if the kernel has no task/TID/children
// (CONFIG_PROC_CHILDREN). Then only the parent ids of all processes show them.
[[nodiscard]] Known<std::vector<int>> read_children(const SystemRoot& root, int pid);

// Of this process.
[[nodiscard]] int process_id();
// Whether our orphaned descendants become our children (PR_SET_CHILD_SUBREAPER).
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
