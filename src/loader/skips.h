// skips.h - positions of the global order that no rank gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

namespace lowtide {

// Positions first .. last - 1 of an epoch.
struct Skip {
  std::uint64_t epoch = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  [[nodiscard]] bool operator==(const Skip& other) const = default;
};

// Sorted, disjoint ranges; those that overlap or touch become one. Every question costs time in
// proportion to their number. Any thread, while nobody changes them.
class Skips {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  Skips() = default;
  explicit Skips(std::vector<Skip> skips);
  Skips(std::initializer_list<Skip> skips) : Skips(std::vector<Skip>(skips)) {}

  // Forgets the oldest ones of epochs before `epoch`, until there are at most `most` ranges or none
  // of them is left.
  void forget(std::size_t most, std::uint64_t epoch);

  [[nodiscard]] std::size_t size() const { return skips_.size(); }
  [[nodiscard]] auto begin() const { return skips_.begin(); }
  [[nodiscard]] auto end() const { return skips_.end(); }

  // How many of the positions first .. last - 1 of an epoch are skipped.
  [[nodiscard]] std::uint64_t count(std::uint64_t epoch, std::uint64_t first,
                                    std::uint64_t last) const;
  // How many positions from `start` on are skipped before the one that has `kept` positions before
  // it that are not skipped.
  [[nodiscard]] std::uint64_t before(std::uint64_t epoch, std::uint64_t start,
                                     std::uint64_t kept) const;
  // The first position after `after` at which a range starts; kNone if there is none.
  [[nodiscard]] std::uint64_t next(std::uint64_t epoch, std::uint64_t after) const;
  // The first epoch from `from` on that has a range; kNone if there is none.
  [[nodiscard]] std::uint64_t next_epoch(std::uint64_t from) const;

 private:
  std::vector<Skip> skips_;
};

}  // namespace lowtide
