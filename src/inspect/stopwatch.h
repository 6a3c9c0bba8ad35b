// stopwatch.h - time that a measurement may take, and took.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace lowtide {

class Stopwatch {
 public:
  explicit Stopwatch(double seconds)
      : start_ns_(now_ns()), end_ns_(start_ns_ + static_cast<std::uint64_t>(seconds * 1e9)) {}

  [[nodiscard]] bool over() const { return now_ns() >= end_ns_; }
  [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }

 private:
  std::uint64_t start_ns_, end_ns_;
};

}  // namespace lowtide
