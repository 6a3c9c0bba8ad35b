// live.h - one line at the foot of the terminal while a program runs above it.
//
// The rows above it become the terminal's scrolling region, as apt does it, so the program's
// output never overwrites the line. Shows nothing if stderr is not a terminal, or is a dumb one.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lowtide::cli {

class LiveLine {
 public:
  LiveLine();
  ~LiveLine();  // removes the line and restores the terminal
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Whether the text is due for an update: after the first second, twice per second.
  [[nodiscard]] bool is_due();
  void show(const std::string& text);  // ASCII; cut to the terminal's width

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_;
  std::uint32_t rows_ = 0;  // the terminal's height when last drawn; 0: not drawn yet
};

}  // namespace lowtide::cli
