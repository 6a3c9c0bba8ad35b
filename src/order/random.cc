#include "order/random.h"

#include <cassert>
#include <stdexcept>
#include <string>

#include "order/mix.h"
#include "order/uniform.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kLargestLimit = std::uint64_t{1} << 63;

// Makes the draws unrelated to those of a shuffle of the same size, seed and epoch.
constexpr std::uint64_t kRandomDraws = 0x72616E646F6D;  // "random"

class Random final : public Order {
 public:
  Random(std::uint64_t positions, std::uint64_t limit, std::uint64_t seed)
      : positions_(positions), seed_(seed), choose_(limit) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return positions_; }

  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override {
    assert(first <= positions_ && out.size() <= positions_ - first);
    const std::uint64_t key = mix64(key_of(choose_.limit(), seed_, epoch) + kRandomDraws);
    for (std::uint64_t& sample : out) sample = choose_(draw(key, first++)).value;
  }

  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t /*epoch*/, std::uint64_t /*sample*/) const noexcept override {
    return std::nullopt;
  }

 private:
  std::uint64_t positions_;
  std::uint64_t seed_;
  Uniform choose_;
};

}  // namespace

std::unique_ptr<Order> make_random(std::uint64_t positions, std::uint64_t limit,
                                   std::uint64_t seed) {
  if (limit == 0 || limit > kLargestLimit) {
    throw std::invalid_argument("random: limit must be 1 to 2^63, not " + std::to_string(limit));
  }
  return std::make_unique<Random>(positions, limit, seed);
}

}  // namespace lowtide
