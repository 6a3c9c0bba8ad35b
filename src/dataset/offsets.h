// offsets.h - where samples of different lengths start in a sequence of units, such as tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lowtide {

// Immutable. Any thread.
class Offsets {
 public:
  virtual ~Offsets() = default;

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;  // samples
  // Writes where samples first .. first + out.size() - 1 start; that of size() is the end of the
  // last one. Requires first + out.size() <= size() + 1. May throw if it must read.
  virtual void offsets(std::uint64_t first, std::span<std::uint64_t> out) const = 0;
};

// A table of at least one entry, which is borrowed and must stay unchanged. Whoever made it has
// checked that no entry is below the one before it.
class ListedOffsets final : public Offsets {
 public:
  explicit ListedOffsets(std::span<const std::int64_t> table) : table_(table) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return table_.size() - 1; }
  void offsets(std::uint64_t first, std::span<std::uint64_t> out) const override {
    const auto from = table_.subspan(static_cast<std::size_t>(first), out.size());
    std::ranges::transform(from, out.begin(),
                           [](std::int64_t offset) { return static_cast<std::uint64_t>(offset); });
  }

 private:
  const std::span<const std::int64_t> table_;
};

}  // namespace lowtide
