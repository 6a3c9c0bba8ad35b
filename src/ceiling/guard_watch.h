// guard_watch.h - watches a guarded program from outside, for files that stay mapped nevertheless.
//
// Maps that the shim cannot see (of a static program started by the guarded one, or made by system
// calls past libc) show up in /proc: the process holds more of one file than the limit in two
// consecutive looks, and its own shim has not reported a reason.
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
  // The page must outlive this object.
  GuardWatch(std::uint64_t limit_bytes, const Page& page);

  // Checks the program and its descendants. Costs some ten microseconds per process, milliseconds
  // for one that holds too much.
  void look(int pid);
  // "busybox held 180 MiB of /data/x.bin: the library is not in it"
  [[nodiscard]] std::vector<std::string> found() const;

 private:
  struct Held {
    std::string program;
    std::uint64_t bytes = 0;
    bool covered = false;
    bool restricted = false;  // by more seccomp filters than guard itself
    int looks = 0;
  };
  void look_at(int pid);
  [[nodiscard]] bool explained(int pid) const;  // by the process's own shim

  std::uint64_t limit_bytes_;
  const Page& page_;
  std::uint64_t filters_;  // the number of seccomp filters that guard runs under
  std::map<std::pair<int, std::string>, Held> held_;  // by process and file
};

}  // namespace lowtide::ceiling
