// guard.h - a program run under a soft limit on the pages of files that it maps.
//
// A small library is preloaded into the program (LD_PRELOAD; no privilege needed). It watches the
// maps of regular files from 1 MiB up that are not executable, and lets their pages go when a
// process holds more than the limit. The page cache keeps the bytes, so a page that is touched
// again comes back without the disk. Nothing that the program wrote can be lost: pages of a private
// map that the program may write to are only ever handed to the kernel's own reclaim.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide {

inline constexpr std::uint64_t kSmallestGuardBytes = 1 << 20;

struct GuardOptions {
  std::vector<std::string> command;  // the program first; found on PATH
  std::uint64_t limit_bytes = 0;  // of mapped pages in each process; kSmallestGuardBytes and more
  bool drop_cache = false;        // let the page cache forget what was let go, too
  bool children = true;           // also the programs and processes that it starts
  bool tree = false;  // the limit holds for the sum over the processes. A page that two of them map
                      // is counted twice, so the sum is never below what they really hold
  std::string shim_path;  // liblowtide_guard.so; empty: ../lib/lowtide beside this executable
};

struct GuardEnd {
  int exit_code = 0;  // as in CommandEnd; 1 where the program was refused
  std::string error;  // why it was refused or could not be started; empty: it ran
  std::uint64_t limit_bytes = 0;
  std::uint64_t peak_bytes = 0;  // of one process; with `tree` of the sum
  std::uint64_t trims = 0;
  std::uint64_t released_bytes = 0;
  std::uint64_t maps = 0;                // that came under the limit
  std::uint64_t processes = 0;           // that were covered
  std::vector<std::string> not_covered;  // in words, one each; empty: all of it was
  std::string advice;                    // what would spare the program much time; mostly empty
};

// Runs the program to its end, as run_command does. Refused before it starts: a program that would
// run without the library (statically linked, set-user-id, for another machine). Throws
// std::invalid_argument for options that make no sense, IoError where the library is missing,
// std::runtime_error where its path has a space, a colon or a "$" and no link to it can be made.
// For a program's main thread only.
[[nodiscard]] GuardEnd guard(const GuardOptions& options);

}  // namespace lowtide
