// stop.h - Ctrl-C in a verb that takes a while: it stops at the next good place, says how far it
// came and leaves the terminal clean.
#pragma once

#include <array>
#include <cstdint>

namespace lowtide::cli {

// While one lives, the first SIGINT or SIGTERM is only noted; a second one ends us at once, also
// in a read that hangs. What was ignored before (nohup) stays ignored. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] bool came() const;
  [[nodiscard]] int exit_code() const;  // 128 + its number, as a shell tells it

 private:
  std::array<void (*)(int), 2> before_;
};

// Thrown by a progress that has no other way to stop what it is told of.
struct Stopped {
  std::uint64_t done_bytes = 0, all_bytes = 0;
};

}  // namespace lowtide::cli
