// guard.h - runs a program under a soft limit on the resident pages of the files that it maps.
//
// A small library is preloaded into the program with LD_PRELOAD; no privilege is needed. It watches
// non-executable maps of regular files of 1 MiB or more, and releases their pages when a process
// holds more than the limit. The page cache keeps the bytes, so a page that is touched again comes
// back without a disk read. Nothing that the program wrote can be lost: pages of a private map that
// the program may write to are only ever handed to the kernel's own reclaim.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide {

inline constexpr std::uint64_t kSmallestGuardBytes = 1 << 20;

struct GuardOptions {
  std::vector<std::string> command;  // the program first; found on PATH
  std::uint64_t limit_bytes = 0;     // mapped pages per process; at least kSmallestGuardBytes
  bool drop_cache = false;           // also drop released pages from the page cache
  bool children = true;              // also cover the programs and processes that it starts
  bool tree = false;  // apply the limit to the sum over all processes. A page that two of them map
                      // is counted twice, so the sum is never below what they really hold
  std::string shim_path;  // liblowtide_guard.so; empty: ../lib/lowtide beside this executable
};

// How the program ended, and what was done to its maps.
struct GuardEnd {
  int exit_code = 0;  // as in CommandEnd; 1 if the program was refused
  std::string error;  // why it was refused or could not be started; empty: it ran
  std::uint64_t limit_bytes = 0;
  std::uint64_t peak_bytes = 0;  // of one process; with `tree`, of the sum
  std::uint64_t trims = 0;
  std::uint64_t released_bytes = 0;
  std::uint64_t maps = 0;                // how many maps were limited
  std::uint64_t processes = 0;           // how many processes were covered
  std::vector<std::string> not_covered;  // one sentence each; empty: everything was covered
  std::string advice;                    // what would save the program much time; usually empty
};

// Runs the program to its end, as run_command does. A program that would run without the library
// (statically linked, set-user-id, built for another machine) is refused before it starts. Throws
// std::invalid_argument for a wrong option, IoError if the library is missing, and
// std::runtime_error if the path of the library contains a space, a colon or a "$" and no link to
// it can be made. Call it on the main thread only.
[[nodiscard]] GuardEnd guard(const GuardOptions& options);

}  // namespace lowtide
