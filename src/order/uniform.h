// uniform.h - turns hashes into unbiased choices. Its values must never change, because saved runs
// depend on them.
#pragma once

#include <cstdint>

#include "order/mix.h"
#include "order/wide.h"

namespace lowtide {

// Chooses among 0 .. limit - 1, for a limit of at least 1. Any thread.
class Uniform {
 public:
  struct Choice {
    std::uint64_t value;     // below the limit, every value equally likely
    std::uint64_t fraction;  // where the hash fell between this value and the next, in 2^-64
  };

  explicit Uniform(std::uint64_t limit) noexcept : limit_(limit), biased_((0 - limit) % limit) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

  // The high half of hash * limit is the value. 2^64 is not a multiple of most limits; the low half
  // identifies the few hashes that would favour some values. Such a hash becomes the key of further
  // draws, so that a position does not depend on the positions before it.
  [[nodiscard]] Choice operator()(std::uint64_t hash) const noexcept {
    Wide product = Wide{hash} * limit_;
    for (std::uint64_t again = 0; static_cast<std::uint64_t>(product) < biased_; ++again) {
      product = Wide{draw(hash, again)} * limit_;
    }
    return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
  }

 private:
  std::uint64_t limit_;
  std::uint64_t biased_;  // 2^64 mod limit: how many hashes must be rejected
};

}  // namespace lowtide
