// stop.h - Ctrl-C in a verb that takes a while: the verb stops at the next safe point, reports how
// far it got and leaves the terminal clean.
#pragma once

#include <array>
#include <cstdint>

namespace lowtide::cli {

// While an instance lives, the first SIGINT or SIGTERM is only recorded; a second one ends the
// process at once, even in a read that hangs. A signal that was ignored before (nohup) stays
// ignored. Only one instance at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] bool came() const;
  [[nodiscard]] int exit_code() const;  // 128 + the signal's number, as shells report it

 private:
  std::array<void (*)(int), 2> before_;
};

// Thrown by a progress callback that has no other way to stop the work it reports on.
struct Stopped {
  std::uint64_t done_bytes = 0, all_bytes = 0;
};

}  // namespace lowtide::cli
