// offsets.h - where samples of different lengths start in a sequence of units, such as tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lowtide {

// Immutable. Any thread.
class Offsets {
 public:
  virtual ~Offsets() = default;

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;  // samples
  // Writes where samples first .. first + out.size() - 1 start; that of size() is the end of the
  // last one. Requires first + out.size() <= size() + 1. May throw if it must read.
  virtual void offsets(std::uint64_t first, std::span<std::uint64_t> out) const = 0;
  // Writes where each of these samples starts and ends. May throw if it must read.
  virtual void bounds(std::span<const std::uint64_t> samples, std::span<std::uint64_t> starts,
                      std::span<std::uint64_t> ends) const {
    std::array<std::uint64_t, 2> both{};
    for (std::size_t i = 0; i < samples.size(); ++i) {
      offsets(samples[i], both);
      starts[i] = both[0];
      ends[i] = both[1];
    }
  }
  // The length of the longest sample. May throw if it must read.
  [[nodiscard]] virtual std::uint64_t longest() const {
    constexpr std::uint64_t kTogether = 8192;
    std::uint64_t most = 0;
    std::vector<std::uint64_t> starts;
    for (std::uint64_t first = 0; first < size(); first += kTogether) {
      starts.resize(std::min(kTogether, size() - first) + 1);
      offsets(first, starts);
      for (std::size_t i = 1; i < starts.size(); ++i) {
        most = std::max(most, starts[i] - starts[i - 1]);
      }
    }
    return most;
  }
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
