// churn.h - detects a program that needs trimmed pages again at once. Arithmetic only.
//
// A program that reads in order maps each page once and moves on. One that jumps through its files
// (a shuffled gather) soon needs most pages again, and each costs it a fault. There are two signs
// of this: the resident pages are in many small stretches; or trims release several times the total
// mapped size per second (where one touch maps 2 MiB, there are few stretches and very many trims).
#pragma once

#include <cstdint>

namespace lowtide::ceiling {

class Churn {
 public:
  // A full count (not just the remains of a trim) found these bytes in this many stretches; 0:
  // unknown.
  void counted(std::uint64_t bytes, std::uint64_t stretches) {
    scattered_ = stretches >= kManyStretches && bytes / stretches <= kSmallStretchBytes;
  }

  // A trim at `now_ns` released this much of all mapped bytes. True: they will be needed again.
  [[nodiscard]] bool trimmed(std::uint64_t released_bytes, std::uint64_t mapped_bytes,
                             std::uint64_t now_ns) {
    const bool soon = last_ns_ != 0 && now_ns - last_ns_ < kSoonNs;
    last_ns_ = now_ns;
    released_bytes_ += released_bytes;
    if (const std::uint64_t passed_ns = now_ns - span_ns_; passed_ns >= kSpanNs) {
      const double mapped_in_span =
          static_cast<double>(mapped_bytes) * static_cast<double>(passed_ns) / 1e9;
      repeated_ = span_ns_ != 0 && static_cast<double>(released_bytes_) > kTimes * mapped_in_span;
      span_ns_ = now_ns;
      released_bytes_ = 0;
    }
    return soon && (scattered_ || repeated_);
  }

 private:
  static constexpr std::uint64_t kManyStretches = 32;
  static constexpr std::uint64_t kSmallStretchBytes = 4 << 20;
  static constexpr std::uint64_t kSoonNs = 1'000'000'000;
  static constexpr std::uint64_t kSpanNs = 250'000'000;
  static constexpr double kTimes = 8;  // times all mapped bytes, per second

  bool scattered_ = false;
  bool repeated_ = false;
  std::uint64_t last_ns_ = 0;
  std::uint64_t span_ns_ = 0;
  std::uint64_t released_bytes_ = 0;  // since span_ns_
};

}  // namespace lowtide::ceiling
