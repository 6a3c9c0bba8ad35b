// guard_watch.h - looks at a guarded program from outside, for files that stay mapped all the same.
//
// What the shim cannot see (a static program started by the guarded one, system calls made past
// libc) shows in /proc: a process that holds more than the limit of one file, at two looks in a
// row, and whose own shim has not told why.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ceiling/shim/page.h"

namespace lowtide::ceiling {

class GuardWatch {
 public:
  // The page outlives this.
  GuardWatch(std::uint64_t limit_bytes, const Page& page);

  // The program and all below it. Some ten microseconds a process; milliseconds for one that holds
  // too much.
  void look(int pid);
  // "busybox held 180 MiB of /data/x.bin: the library is not in it"
  [[nodiscard]] std::vector<std::string> found() const;

 private:
  struct Held {
    std::string program;
    std::uint64_t bytes = 0;
    bool covered = false;
    bool restricted = false;  // by more filters of system calls than guard itself
    int looks = 0;
  };
  void look_at(int pid);
  [[nodiscard]] bool explained(int pid) const;  // by the process's own shim

  std::uint64_t limit_bytes_;
  const Page& page_;
  std::uint64_t filters_;                             // of system calls, that guard is under
  std::map<std::pair<int, std::string>, Held> held_;  // by process and file
};

}  // namespace lowtide::ceiling
