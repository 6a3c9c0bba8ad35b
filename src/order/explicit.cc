#include <algorithm>
#include <cassert>
#include <variant>

#include "order/check_rows.h"
#include "order/order.h"

namespace lowtide {
namespace {

template <typename T>
class Explicit final : public Order {
 public:
  explicit Explicit(std::span<const T> samples) : samples_(samples) {}

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
  check_rows("order", samples, limit);
  return std::visit(
      []<typename T>(std::span<const T> list) -> std::unique_ptr<Order> {
        return std::make_unique<Explicit<T>>(list);
      },
      samples);
}

}  // namespace lowtide
