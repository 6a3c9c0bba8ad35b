#include "order/mixed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "order/random.h"

namespace lowtide::mixed_test {
namespace {

using Samples = std::vector<std::uint64_t>;

struct Rig {
  Rig(std::vector<double> weights_of, Samples limits_of)
      : weights(std::move(weights_of)),
        limits(std::move(limits_of)),
        order(Mixture(weights), orders_of(limits), limits) {}

  static std::vector<std::unique_ptr<Order>> orders_of(const Samples& limits) {
    std::vector<std::unique_ptr<Order>> orders;
    for (std::size_t i = 0; i < limits.size(); ++i) orders.push_back(make_shuffle(limits[i], i));
    return orders;
  }
  [[nodiscard]] Samples draw(std::uint64_t first, std::size_t count) const {
    Samples samples(count);
    order.fill(0, first, samples);
    return samples;
  }
  [[nodiscard]] std::size_t source_of(std::uint64_t sample) const {
    std::size_t source = 0;
    for (; sample >= limits[source]; ++source) sample -= limits[source];
    return source;
  }

  std::vector<double> weights;
  Samples limits;
  MixedOrder order;
};

TEST(MixedOrder, GivesEachSourceItsShareAndEachOfItsSamplesOnceInItsOwnEpoch) {
  const Rig rig({0.7, 0.2, 0.1}, {50, 30, 7});
  const Samples all = rig.draw(0, 1000);
  std::vector<Samples> of(3);
  const double shares[] = {0.7, 0.2, 0.1};
  for (std::size_t n = 0; n < all.size(); ++n) {
    ASSERT_LT(all[n], 87U);
    of[rig.source_of(all[n])].push_back(all[n]);
    for (std::size_t k = 0; k < 3; ++k) {
      const double share = shares[k] * static_cast<double>(n + 1);
      ASSERT_LE(std::abs(static_cast<double>(of[k].size()) - share), 1.5) << n << " of " << k;
    }
  }
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    const auto twin = make_shuffle(rig.limits[k], k);
    for (std::size_t i = 0; i < of[k].size(); ++i) {
      std::uint64_t expected = 0;
      twin->fill(i / rig.limits[k], i % rig.limits[k], std::span(&expected, 1));
      ASSERT_EQ(of[k][i], first + expected) << "source " << k << ", its " << i << "-th";
    }
    first += rig.limits[k];
  }
}

TEST(MixedOrder, StartsAnywhereAndIgnoresTheEpoch) {
  const Rig rig({3, 1}, {11, 5});
  const Samples all = rig.draw(0, 300);
  for (std::uint64_t first = 0; first < 290; first += 7) {
    Samples some(10);
    rig.order.fill(first, first, some);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + static_cast<long>(first)));
  }
  EXPECT_EQ(rig.order.size(), Mixture::kMostPositions);
  EXPECT_FALSE(rig.order.position_of(0, 3));
  EXPECT_EQ(rig.draw(Mixture::kMostPositions - 5, 5).size(), 5U);
}

TEST(MixedOrder, FindsTheFirstPlaceOfASampleInARange) {
  const Rig rig({0.55, 0.35, 0.1}, {23, 40, 3});
  const Samples all = rig.draw(0, 700);
  for (const std::uint64_t first : {0, 1, 50, 99, 333}) {
    for (const std::uint64_t last : {first, first + 1, first + 60, first + 300}) {
      std::uint64_t before = 0;
      for (std::uint32_t source = 0; source < 3; ++source) {
        for (std::uint64_t sample = 0; sample < rig.limits[source]; ++sample) {
          const auto begin = all.begin() + static_cast<long>(first);
          const auto end = all.begin() + static_cast<long>(last);
          const auto twin = std::find(begin, end, before + sample);
          const auto found = rig.order.position_between(source, sample, first, last);
          ASSERT_EQ(found.has_value(), twin != end) << source << "/" << sample;
          if (found) {
            ASSERT_EQ(*found, static_cast<std::uint64_t>(twin - all.begin()));
          }
        }
        before += rig.limits[source];
      }
    }
  }
}

TEST(MixedOrder, CannotFindASampleThatIsDrawnAtRandom) {
  std::vector<std::unique_ptr<Order>> orders;
  orders.push_back(make_random(10, 100, 1));
  orders.push_back(make_sequential(10));
  const Samples limits{100, 10};
  const std::vector<double> weights{1, 1};
  const MixedOrder order(Mixture(weights), std::move(orders), limits);
  EXPECT_FALSE(order.position_between(0, 5, 0, 1000));
  EXPECT_TRUE(order.position_between(1, 5, 0, 1000));
}

}  // namespace
}  // namespace lowtide::mixed_test
