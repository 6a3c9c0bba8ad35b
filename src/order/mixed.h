// mixed.h - the order of a weighted mixture, which takes from the orders of its sources in turn.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "order/mixture.h"
#include "order/order.h"

namespace lowtide {

// The samples of source k are numbered after those of the sources before it. A source that ends
// continues with its own next epoch, so there is one endless epoch; the `epoch` argument is
// ignored. Any thread.
class MixedOrder final : public Order {
 public:
  // One order per weight, none of them empty; source k has `limits[k]` samples.
  MixedOrder(Mixture mixture, std::vector<std::unique_ptr<Order>> orders,
             std::span<const std::uint64_t> limits);

  [[nodiscard]] std::uint64_t size() const noexcept override { return Mixture::kMostPositions; }
  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t /*epoch*/, std::uint64_t /*sample*/) const noexcept override {
    return std::nullopt;  // a sample has many positions
  }
  // The first position in [first, last) at which a sample of a source comes.
  [[nodiscard]] std::optional<std::uint64_t> position_between(std::uint32_t source,
                                                              std::uint64_t sample,
                                                              std::uint64_t first,
                                                              std::uint64_t last) const noexcept;

 private:
  Mixture mixture_;
  std::vector<std::unique_ptr<Order>> orders_;
  std::vector<std::uint64_t> first_sample_;
};

}  // namespace lowtide
