// order.h - decides WHICH sample comes next, never how its bytes are fetched.
//
// An Order is arithmetic over (size, seed, epoch, position): no files, no threads, no clock, no
// ranks. Equal inputs give equal sequences on every machine and in every version, so a run resumes
// from two integers: the epoch and the position.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "lowtide/options.h"

namespace lowtide {

class Order {
 public:
  virtual ~Order() = default;

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;  // positions in an epoch

  // Writes the samples at positions first, first + 1, ... of this epoch into `out`.
  // Requires first <= size() and out.size() <= size() - first. No table that grows with the data
  // set, except that of a weighted order. Any thread.
  virtual void fill(std::uint64_t epoch, std::uint64_t first,
                    std::span<std::uint64_t> out) const noexcept = 0;

  // The position of a sample in this epoch; nullopt if the order would have to search for it, or
  // does not contain it. Any thread.
  [[nodiscard]] virtual std::optional<std::uint64_t> position_of(
      std::uint64_t epoch, std::uint64_t sample) const noexcept = 0;

  // Writes the positions of samples first, first + 1, ... into `out`: position_of for many at once.
  // False if it returns nullopt for one of them. Any thread.
  [[nodiscard]] virtual bool positions(std::uint64_t epoch, std::uint64_t first,
                                       std::span<std::uint64_t> out) const noexcept {
    for (std::uint64_t& position : out) {
      const std::optional<std::uint64_t> found = position_of(epoch, first++);
      if (!found) return false;
      position = *found;
    }
    return true;
  }

  // Whether successive positions are adjacent in the data.
  [[nodiscard]] virtual bool sequential() const noexcept { return false; }
};

[[nodiscard]] std::unique_ptr<Order> make_sequential(std::uint64_t size);

// A permutation of 0 .. size - 1 for every (seed, epoch). Size 0 gives an empty order; a size above
// 2^63 throws std::invalid_argument. For up to 65536 samples it is a uniform Fisher-Yates table of
// 16-bit entries for the last requested epoch, at most 256 KiB with its inverse. Above that it is a
// keyed bijection without a table. The size is part of the key, so the orders of n and n + 1
// samples are unrelated.
[[nodiscard]] std::unique_ptr<Order> make_shuffle(std::uint64_t size, std::uint64_t seed);

// The user's own order, the same in every epoch. Borrowed: `samples` must outlive the Order and
// stay unchanged. Every entry must be in 0 .. limit - 1; otherwise throws std::out_of_range, which
// names the position and the value of the first wrong one. Duplicates are allowed, and position_of
// returns nullopt.
[[nodiscard]] std::unique_ptr<Order> make_explicit(RowList samples, std::uint64_t limit);

}  // namespace lowtide
