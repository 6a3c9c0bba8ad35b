#include <cassert>
#include <numeric>

#include "order/order.h"

namespace lowtide {
namespace {

class Sequential final : public Order {
 public:
  explicit Sequential(std::uint64_t size) : size_(size) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }

  void fill(std::uint64_t /*epoch*/, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override {
    assert(first <= size_ && out.size() <= size_ - first);
    std::iota(out.begin(), out.end(), first);
  }

  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t /*epoch*/, std::uint64_t sample) const noexcept override {
    if (sample >= size_) return std::nullopt;
    return sample;
  }

  [[nodiscard]] bool sequential() const noexcept override { return true; }

 private:
  std::uint64_t size_;
};

}  // namespace

std::unique_ptr<Order> make_sequential(std::uint64_t size) {
  return std::make_unique<Sequential>(size);
}

}  // namespace lowtide
