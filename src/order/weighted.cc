#include "order/weighted.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "order/mix.h"
#include "order/uniform.h"
#include "order/weights.h"
#include "order/wide.h"

namespace lowtide {
namespace {

// Makes the draws unrelated to those of a shuffle or a random order of the same size.
constexpr std::uint64_t kWeightedDraws = 0x7765696768746564;  // "weighted"

constexpr std::uint64_t kFull = std::uint64_t{1} << 32;  // the parts of a column

// Returns the largest weight.
double validate_samples(std::span<const double> weights) {
  if (weights.empty()) throw std::invalid_argument("weights: none given; give one per sample");
  if (weights.size() > AliasTable::kMostWeights) {
    throw std::invalid_argument("weights: " + std::to_string(weights.size()) +
                                " given; at most 4294967295 samples can be weighted");
  }
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      refuse_weight(i, weights[i], "each must be a finite number, 0 or above");
    }
    largest = std::max(largest, weights[i]);
  }
  if (largest == 0) {
    throw std::invalid_argument("weights: all are 0; at least one must be above 0");
  }
  return largest;
}

// Weights as integers in a common unit, in which the largest has 64 bits. No sum can overflow or
// depend on how a machine rounds.
class Units {
 public:
  explicit Units(double largest) noexcept
      : exponent_(split(largest).exponent), lift_(std::countl_zero(split(largest).mantissa)) {}

  [[nodiscard]] std::uint64_t of(double weight) const noexcept {
    const auto [mantissa, exponent] = split(weight);
    const unsigned drop = exponent_ - exponent;
    return drop < 64 ? mantissa << lift_ >> drop : 0;
  }

 private:
  struct Float {
    std::uint64_t mantissa;
    unsigned exponent;
  };

  [[nodiscard]] static Float split(double weight) noexcept {
    constexpr int kMantissaBits = 52;
    const auto bits = std::bit_cast<std::uint64_t>(weight);
    const auto exponent = static_cast<unsigned>(bits >> kMantissaBits) & 0x7FF;
    const std::uint64_t normal = exponent > 0 ? 1 : 0;  // else denormal: no hidden bit
    const std::uint64_t mask = (std::uint64_t{1} << kMantissaBits) - 1;
    return {(bits & mask) | normal << kMantissaBits, exponent + (normal == 0 ? 1 : 0)};
  }

  unsigned exponent_;
  int lift_;
};

// Divides kFull parts per column among all weights. An entry gets the parts between the sum of the
// weights before it and the sum that includes it, both rounded. So all parts are given away, no
// entry is off by much more than one part, and a weight of 0 gets none.
class Division {
 public:
  Division(std::span<const double> weights, double largest) : weights_(weights), units_(largest) {
    for (const double weight : weights) total_ += units_.of(weight);
    while (total_ >> drop_ >> 64 != 0) ++drop_;
    inverse_ = static_cast<std::uint64_t>((~Wide{0} >> 1) / (total_ >> drop_));
  }

  struct Share {
    std::uint32_t entry;
    std::uint64_t parts;
  };

  // One pass over the entries that have more parts than a column (std::greater) or fewer
  // (std::less).
  template <typename Compare>
  class Pass {
   public:
    explicit Pass(const Division& division) noexcept : division_(division) {}

    // Valid until the next call; null after the last.
    [[nodiscard]] const Share* next() noexcept {
      if (at_ == found_) find();
      return at_ < found_ ? &block_[at_++] : nullptr;
    }

   private:
    // Which entries belong to this pass cannot be predicted. So every entry is written, and counted
    // or overwritten by the next one, without a branch.
    void find() noexcept {
      const std::span<const double> weights = division_.weights_;
      at_ = found_ = 0;
      while (found_ == 0 && entry_ < weights.size()) {
        const std::size_t end = std::min(entry_ + block_.size(), weights.size());
        for (; entry_ < end; ++entry_) {
          sum_ += division_.units_.of(weights[entry_]);
          const std::uint64_t before = std::exchange(given_, division_.parts_in(sum_));
          block_[found_] = {static_cast<std::uint32_t>(entry_), given_ - before};
          found_ += Compare{}(given_ - before, kFull) ? 1 : 0;
        }
      }
    }

    const Division& division_;
    std::array<Share, 256> block_;
    std::size_t at_ = 0;
    std::size_t found_ = 0;
    std::size_t entry_ = 0;    // the next to be looked at
    Wide sum_ = 0;             // of the entries before it
    std::uint64_t given_ = 0;  // the parts of all of these
  };

 private:
  // Two multiplications instead of a division, which would take most of the time.
  [[nodiscard]] std::uint64_t parts_in(Wide sum) const noexcept {
    if (sum == total_) return weights_.size() * kFull;
    const auto top = static_cast<std::uint64_t>(sum >> drop_);
    const auto fraction = static_cast<std::uint64_t>(Wide{top} * inverse_ >> 63);  // in 2^-64
    return static_cast<std::uint64_t>((Wide{fraction} * weights_.size() + kFull / 2) >> 32);
  }

  std::span<const double> weights_;
  Units units_;
  Wide total_ = 0;             // of all units
  unsigned drop_ = 0;          // total_ >> drop_ has 64 bits
  std::uint64_t inverse_ = 0;  // 2^127 / (total_ >> drop_)
};

class Weighted final : public Order {
 public:
  Weighted(std::shared_ptr<const AliasTable> table, std::uint64_t positions, std::uint64_t seed)
      : table_(std::move(table)), positions_(positions), seed_(seed), choose_(table_->size()) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return positions_; }

  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override {
    assert(first <= positions_ && out.size() <= positions_ - first);
    const std::uint64_t key = mix64(key_of(choose_.limit(), seed_, epoch) + kWeightedDraws);
    const std::span<const AliasTable::Column> columns = table_->columns();
    // In a large table every draw misses the cache. The misses of a block overlap.
    constexpr std::size_t kBlock = 64;
    std::array<std::uint32_t, kBlock> fractions;
    while (!out.empty()) {
      const auto block = out.first(std::min(kBlock, out.size()));
      for (std::size_t i = 0; i < block.size(); ++i) {
        const auto [column, fraction] = choose_(draw(key, first++));
        __builtin_prefetch(&columns[column]);
        block[i] = column;
        fractions[i] = static_cast<std::uint32_t>(fraction >> 32);
      }
      for (std::size_t i = 0; i < block.size(); ++i) {
        const auto [threshold, alias] = columns[block[i]];
        const std::uint64_t above = fractions[i] < threshold ? 0 : ~std::uint64_t{0};
        block[i] ^= (block[i] ^ alias) & above;  // no branch: it would be a guess every time
      }
      out = out.subspan(block.size());
    }
  }

  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t /*epoch*/, std::uint64_t /*sample*/) const noexcept override {
    return std::nullopt;
  }

 private:
  std::shared_ptr<const AliasTable> table_;
  std::uint64_t positions_;
  std::uint64_t seed_;
  Uniform choose_;
};

}  // namespace

// A heavy entry, which has more parts than a column, fills up the columns of light ones until it
// fits into its own column. What is missing there comes from the next heavy entry. Because all
// parts add up, the light entries last as long as the heavy ones, and the last column is full.
AliasTable::AliasTable(std::span<const double> weights) {
  const Division division(weights, validate_samples(weights));
  columns_.resize(weights.size());
  std::uint32_t own = 0;
  for (Column& column : columns_) column = {0, own++};  // a full column, until it turns out light
  Division::Pass<std::less<>> lights(division);
  Division::Pass<std::greater<>> heavies(division);
  std::uint64_t missing = 0;
  std::uint32_t last = 0;
  while (const Division::Share* heavy = heavies.next()) {
    if (missing > 0) columns_[last] = {static_cast<std::uint32_t>(kFull - missing), heavy->entry};
    std::uint64_t left = heavy->parts - missing;
    while (left > kFull) {
      const Division::Share* light = lights.next();
      assert(light != nullptr);
      columns_[light->entry] = {static_cast<std::uint32_t>(light->parts), heavy->entry};
      left -= kFull - light->parts;
    }
    missing = kFull - left;
    last = heavy->entry;
  }
  assert(missing == 0);
}

std::unique_ptr<Order> make_weighted(std::shared_ptr<const AliasTable> table,
                                     std::uint64_t positions, std::uint64_t seed) {
  return std::make_unique<Weighted>(std::move(table), positions, seed);
}

}  // namespace lowtide
