// stopwatch.h - how long a measurement may take, and how long it took.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/clock.h"

namespace lowtide {

struct TimeLimit {
  double seconds = 0;
  std::function<bool()> stop = {};  // true: stop now; empty: never
};

class Stopwatch {
 public:
  explicit Stopwatch(TimeLimit limit)
      : start_ns_(now_ns()),
        end_ns_(start_ns_ + static_cast<std::uint64_t>(limit.seconds * 1e9)),
        stop_(std::move(limit.stop)) {}

  [[nodiscard]] bool over() const { return now_ns() >= end_ns_ || (stop_ && stop_()); }
  [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }

 private:
  std::uint64_t start_ns_, end_ns_;
  std::function<bool()> stop_;
};

}  // namespace lowtide
