// live.h - one line at the foot of the terminal while a program runs above it.
//
// The rows above become the terminal's scrolling region, as apt does it, so that the program's
// output and the line do not meet. Nothing at all where stderr is no terminal, or a dumb one.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lowtide::cli {

class LiveLine {
 public:
  LiveLine();
  ~LiveLine();  // the line is gone and the terminal as it was
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Whether it is time for the next text: from one second on, twice a second.
  [[nodiscard]] bool is_due();
  void show(const std::string& text);  // ASCII; cut to the width

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_;
  std::uint32_t rows_ = 0;  // of the terminal when it was last drawn; 0: not yet
};

}  // namespace lowtide::cli
