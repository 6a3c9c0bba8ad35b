#include "order/mixed.h"

#include <utility>

namespace lowtide {

MixedOrder::MixedOrder(Mixture mixture, std::vector<std::unique_ptr<Order>> orders,
                       std::span<const std::uint64_t> limits)
    : mixture_(std::move(mixture)), orders_(std::move(orders)) {
  std::uint64_t first = 0;
  for (const std::uint64_t limit : limits) {
    first_sample_.push_back(first);
    first += limit;
  }
}

void MixedOrder::fill(std::uint64_t /*epoch*/, std::uint64_t first,
                      std::span<std::uint64_t> out) const noexcept {
  for (std::uint64_t& sample : out) {
    const Mixture::Place place = mixture_.at(first++);
    const Order& order = *orders_[place.source];
    order.fill(place.index / order.size(), place.index % order.size(), std::span(&sample, 1));
    sample += first_sample_[place.source];
  }
}

std::optional<std::uint64_t> MixedOrder::position_between(std::uint32_t source,
                                                          std::uint64_t sample, std::uint64_t first,
                                                          std::uint64_t last) const noexcept {
  const Order& order = *orders_[source];
  const std::uint64_t begin = mixture_.count(source, first);
  const std::uint64_t end = mixture_.count(source, last);
  for (std::uint64_t epoch = begin / order.size(); epoch * order.size() < end; ++epoch) {
    const auto inside = order.position_of(epoch, sample);
    if (!inside) return std::nullopt;
    const std::uint64_t index = epoch * order.size() + *inside;
    if (index >= begin && index < end) return mixture_.position_of({source, index});
  }
  return std::nullopt;
}

}  // namespace lowtide
