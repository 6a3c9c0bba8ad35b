#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "order/order.h"

namespace lowtide {
namespace {

template <typename T>
[[noreturn]] void refuse(std::size_t entry, T value, std::uint64_t limit) {
  throw std::out_of_range(
      "order: entry " + std::to_string(entry) + " is " + std::to_string(value) +
      (limit == 1 ? ", but there is 1 row" : ", but there are " + std::to_string(limit) + " rows"));
}

// One unsigned comparison per entry, in its own width, finds both negative and too large ones. A
// chunk is tested without an early exit so that the compiler can vectorise it; only a chunk with a
// fault is searched for the first one.
template <typename T>
void validate(std::span<const T> samples, std::uint64_t limit) {
  using U = std::make_unsigned_t<T>;
  constexpr std::size_t kChunk = 1024;
  if (samples.empty()) return;
  if (limit == 0) refuse(0, samples[0], limit);
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  const U last = static_cast<U>(std::min(limit - 1, kLargest));
  const auto bad = [last](T value) { return static_cast<U>(value) > last; };
  for (std::size_t first = 0; first < samples.size(); first += kChunk) {
    const auto chunk = samples.subspan(first, std::min(kChunk, samples.size() - first));
    U any = 0;
    for (const T value : chunk) any = static_cast<U>(any | static_cast<U>(bad(value)));
    if (any == 0) continue;
    const auto found = std::find_if(chunk.begin(), chunk.end(), bad);
    refuse(first + static_cast<std::size_t>(found - chunk.begin()), *found, limit);
  }
}

template <typename T>
class Explicit final : public Order {
 public:
  Explicit(std::span<const T> samples, std::uint64_t limit) : samples_(samples) {
    validate(samples, limit);
  }

  [[nodiscard]] std::uint64_t size() const noexcept override { return samples_.size(); }

  void fill(std::uint64_t /*epoch*/, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override {
    assert(first <= size() && out.size() <= size() - first);
    const auto from = samples_.subspan(static_cast<std::size_t>(first), out.size());
    std::transform(from.begin(), from.end(), out.begin(),
                   [](T value) { return static_cast<std::uint64_t>(value); });
  }

  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t /*epoch*/, std::uint64_t /*sample*/) const noexcept override {
    return std::nullopt;
  }

 private:
  std::span<const T> samples_;
};

}  // namespace

std::unique_ptr<Order> make_explicit(RowList samples, std::uint64_t limit) {
  return std::visit(
      [limit]<typename T>(std::span<const T> list) -> std::unique_ptr<Order> {
        return std::make_unique<Explicit<T>>(list, limit);
      },
      samples);
}

}  // namespace lowtide
