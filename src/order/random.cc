#include "order/random.h"

#include <cassert>
#include <stdexcept>
#include <string>

#include "order/mix.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kLargestLimit = std::uint64_t{1} << 63;

// Makes the draws unrelated to those of a shuffle of the same size, seed and epoch.
constexpr std::uint64_t kRandomDraws = 0x72616E646F6D;  // "random"

class Random final : public Order {
 public:
  Random(std::uint64_t positions, std::uint64_t limit, std::uint64_t seed)
      : positions_(positions), limit_(limit), seed_(seed), biased_((0 - limit) % limit) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return positions_; }

  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override {
    assert(first <= positions_ && out.size() <= positions_ - first);
    const std::uint64_t key = mix64(key_of(limit_, seed_, epoch) + kRandomDraws);
    for (std::uint64_t& sample : out) sample = below_limit(draw(key, first++));
  }

  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t /*epoch*/, std::uint64_t /*sample*/) const noexcept override {
    return std::nullopt;
  }

 private:
  // The high half of hash * limit is the sample. 2^64 is not a multiple of most limits; the low
  // half identifies the few hashes that would favour some samples. Such a hash becomes the key of
  // further draws, so that a position does not depend on the positions before it.
  [[nodiscard]] std::uint64_t below_limit(std::uint64_t hash) const noexcept {
    __extension__ using Product = unsigned __int128;
    Product product = Product{hash} * limit_;
    for (std::uint64_t again = 0; static_cast<std::uint64_t>(product) < biased_; ++again) {
      product = Product{draw(hash, again)} * limit_;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t positions_;
  std::uint64_t limit_;
  std::uint64_t seed_;
  std::uint64_t biased_;  // 2^64 mod limit: how many hashes must be rejected
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
