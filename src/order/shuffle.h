// shuffle.h - the two permutations behind make_shuffle, exposed so that tests and benchmarks can
// use each of them, and a weakened version.
//
// Their values for (size, seed, epoch, position) never change between versions, because saved runs
// resume by them. A change here that moves one index breaks the golden test and must not be made.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/mutex.h"
#include "order/order.h"

namespace lowtide {

inline constexpr std::uint64_t kLargestTable = 65536;
inline constexpr std::uint64_t kLargestShuffle = std::uint64_t{1} << 63;

// Fisher-Yates with unbiased draws: every order of the samples is equally likely. A keyed bijection
// cannot promise that when there are few samples.
//
// Holds the table of the last requested epoch, 2 bytes per sample, and an inverse of the same size,
// which the first position_of of an epoch fills. Both are allocated at construction, so fill never
// runs out of memory. Any thread: one lock guards the tables. Threads that alternate between epochs
// get correct results slowly (a table of 65536 takes about 0.2 ms).
class TableShuffle final : public Order {
 public:
  // Requires size <= kLargestTable; else std::invalid_argument.
  TableShuffle(std::uint64_t size, std::uint64_t seed);

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t epoch, std::uint64_t sample) const noexcept override;

 private:
  void deal(std::uint64_t epoch) const noexcept LOWTIDE_REQUIRES(mutex_);
  void invert() const noexcept LOWTIDE_REQUIRES(mutex_);

  std::uint64_t size_, seed_;
  mutable Mutex mutex_;
  mutable std::vector<std::uint16_t> samples_ LOWTIDE_GUARDED_BY(mutex_);
  mutable std::vector<std::uint16_t> positions_ LOWTIDE_GUARDED_BY(mutex_);
  // The epochs of samples_ and of positions_.
  mutable std::optional<std::uint64_t> dealt_ LOWTIDE_GUARDED_BY(mutex_);
  mutable std::optional<std::uint64_t> inverted_ LOWTIDE_GUARDED_BY(mutex_);
};

// A generalised Feistel network on Z_a x Z_b, a = ceil(sqrt(size)), b = ceil(size / a), both below
// 2^32. A position p is the pair (p / b, p % b); each round moves one half by a keyed hash of the
// other. a * b exceeds size by less than a. A result outside the size is sent through again until
// it falls inside, which keeps the whole a bijection. No state: O(1) memory, no lock, any thread.
class FeistelShuffle final : public Order {
 public:
  static constexpr unsigned kRounds = 8;
  static constexpr unsigned kMostRounds = 16;

  // Which code computes whole blocks. All give the same results; kPortable is for tests.
  enum class Kernel : std::uint8_t { kBest, kPortable };

  // Requires kLargestTable < size <= kLargestShuffle and rounds <= kMostRounds; else
  // std::invalid_argument. Fewer than kRounds is for tests that must see a weak order fail.
  FeistelShuffle(std::uint64_t size, std::uint64_t seed, unsigned rounds = kRounds,
                 Kernel kernel = Kernel::kBest);

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t epoch, std::uint64_t sample) const noexcept override;
  [[nodiscard]] bool positions(std::uint64_t epoch, std::uint64_t first,
                               std::span<std::uint64_t> out) const noexcept override;

 private:
  struct RoundKey {
    std::uint32_t before;  // added before the first multiplication
    std::uint32_t within;  // added before the second
  };
  using Keys = std::array<RoundKey, kMostRounds>;
  struct Kernels;

  // The images of points first, first + 1, ..., forward or, if inverse, backward.
  template <bool kInverse>
  void map(std::uint64_t epoch, std::uint64_t first, std::span<std::uint64_t> out) const noexcept;
  [[nodiscard]] Keys keys_of(std::uint64_t epoch) const noexcept;
  [[nodiscard]] std::uint64_t forward(const Keys& keys, std::uint64_t point) const noexcept;
  [[nodiscard]] std::uint64_t backward(const Keys& keys, std::uint64_t point) const noexcept;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint32_t a_;
  std::uint32_t b_;
  unsigned rounds_;
  Kernel kernel_;
};

}  // namespace lowtide
