#include "order/shuffle.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/cpu.h"
#include "order/mix.h"

namespace lowtide {
namespace {

// A keyed hash of `half`, scaled to 0 .. modulus - 1 by its high bits, because a multiplication is
// cheaper than the division of a remainder. It uses 32-bit lanes because SIMD has no 64-bit
// multiplication before AVX-512.
[[gnu::always_inline]] inline std::uint32_t hash_below(std::uint32_t modulus, std::uint32_t half,
                                                       std::uint32_t before,
                                                       std::uint32_t within) noexcept {
  std::uint32_t h = (half + before) * 0x9E3779B1U;
  h ^= h >> 15;
  h = (h + within) * 0x85A308D3U;
  return static_cast<std::uint32_t>((std::uint64_t{h} * modulus) >> 32);
}

// (x - y) mod modulus for x, y < modulus, even if their sum does not fit into 32 bits.
[[gnu::always_inline]] inline std::uint32_t subtract(std::uint32_t x, std::uint32_t y,
                                                     std::uint32_t modulus) noexcept {
  return x - y + (x < y ? modulus : 0);
}

std::uint64_t ceil_sqrt(std::uint64_t n) noexcept {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root < n) ++root;
  while (root > 0 && (root - 1) * (root - 1) >= n) --root;
  return root;
}

}  // namespace

TableShuffle::TableShuffle(std::uint64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
  if (size > kLargestTable) {
    throw std::invalid_argument("shuffle: a table holds at most 65536 samples, not " +
                                std::to_string(size));
  }
  samples_.resize(static_cast<std::size_t>(size));
  positions_.resize(static_cast<std::size_t>(size));
}

void TableShuffle::deal(std::uint64_t epoch) const noexcept {
  if (dealt_ == epoch) return;
  const std::uint64_t key = key_of(samples_.size(), seed_, epoch);
  std::uint64_t drawn = 0;
  std::iota(samples_.begin(), samples_.end(), std::uint16_t{0});
  for (auto left = static_cast<std::uint32_t>(samples_.size()); left > 1; --left) {
    // 2^32 is mostly not a multiple of `left`. The low part of the product identifies the few draws
    // that would favour some samples, and they are repeated.
    std::uint64_t product = 0;
    do {
      product = (draw(key, drawn++) >> 32) * left;
    } while (static_cast<std::uint32_t>(product) < left &&
             static_cast<std::uint32_t>(product) < (0U - left) % left);
    std::swap(samples_[left - 1], samples_[product >> 32]);
  }
  dealt_ = epoch;
}

void TableShuffle::invert() const noexcept {
  if (inverted_ == dealt_) return;
  for (std::size_t position = 0; position < samples_.size(); ++position) {
    positions_[samples_[position]] = static_cast<std::uint16_t>(position);
  }
  inverted_ = dealt_;
}

void TableShuffle::fill(std::uint64_t epoch, std::uint64_t first,
                        std::span<std::uint64_t> out) const noexcept {
  assert(first <= size() && out.size() <= size() - first);
  const MutexLock lock(mutex_);
  deal(epoch);
  std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
}

std::optional<std::uint64_t> TableShuffle::position_of(std::uint64_t epoch,
                                                       std::uint64_t sample) const noexcept {
  if (sample >= size()) return std::nullopt;
  const MutexLock lock(mutex_);
  deal(epoch);
  invert();
  return positions_[static_cast<std::size_t>(sample)];
}

// Computes blocks of positions, with all left halves in one array and all right halves in another.
// Every loop is one operation over a constant number of lanes, which compilers vectorise.
struct FeistelShuffle::Kernels {
  static constexpr std::size_t kLanes = 64;
  // The lanes of one block may cross the end of a row of Z_b only once, so b must not be smaller.
  static_assert(kLanes <= 256 && kLargestTable == 65536);

  template <bool kInverse>
  [[gnu::always_inline]] static inline void move(std::uint32_t* __restrict moved,
                                                 const std::uint32_t* __restrict half,
                                                 std::uint32_t modulus, RoundKey key) noexcept {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint32_t hash = hash_below(modulus, half[i], key.before, key.within);
      moved[i] = subtract(moved[i], kInverse ? modulus - hash : hash, modulus);
    }
  }

  // The images of points first .. first + kLanes - 1 after one pass; some may be outside the size.
  // Lanes beyond a * b hold garbage.
  template <bool kInverse>
  [[gnu::always_inline]] static inline void block(const FeistelShuffle& order, const Keys& keys,
                                                  std::uint64_t first,
                                                  std::uint64_t* __restrict out) noexcept {
    alignas(64) std::uint32_t left[kLanes];
    alignas(64) std::uint32_t right[kLanes];
    const std::uint32_t a = order.a_;
    const std::uint32_t b = order.b_;
    const auto left0 = static_cast<std::uint32_t>(first / b);
    const auto right0 = static_cast<std::uint32_t>(first % b);
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      const std::uint32_t wrapped = right0 + i >= b ? 1 : 0;
      left[i] = left0 + wrapped;
      right[i] = right0 + i - (wrapped != 0 ? b : 0);
    }
    for (unsigned i = 0; i < order.rounds_; ++i) {
      const unsigned round = kInverse ? order.rounds_ - 1 - i : i;
      if (round % 2 == 0) {
        move<kInverse>(left, right, a, keys[round]);
      } else {
        move<kInverse>(right, left, b, keys[round]);
      }
    }
    for (std::size_t i = 0; i < kLanes; ++i) out[i] = std::uint64_t{left[i]} * b + right[i];
  }

  template <bool kInverse>
  static void portable(const FeistelShuffle& order, const Keys& keys, std::uint64_t first,
                       std::uint64_t* out) noexcept {
    block<kInverse>(order, keys, first, out);
  }

#if defined(__x86_64__)
  // Chosen by a plain test at run time, because target_clones needs ifunc, which sanitizers and
  // some C libraries do not support well.
  template <bool kInverse>
  [[gnu::target("avx2")]] static void widest(const FeistelShuffle& order, const Keys& keys,
                                             std::uint64_t first, std::uint64_t* out) noexcept {
    block<kInverse>(order, keys, first, out);
  }
#else
  template <bool kInverse>
  static constexpr auto widest = portable<kInverse>;
#endif
};

FeistelShuffle::FeistelShuffle(std::uint64_t size, std::uint64_t seed, unsigned rounds,
                               Kernel kernel)
    : size_(size), seed_(seed), a_(0), b_(0), rounds_(rounds), kernel_(kernel) {
  if (size <= kLargestTable || size > kLargestShuffle) {
    throw std::invalid_argument("shuffle: size must be 65537 to 2^63, not " + std::to_string(size));
  }
  if (rounds > kMostRounds) {
    throw std::invalid_argument("shuffle: at most 16 rounds, not " + std::to_string(rounds));
  }
  const std::uint64_t a = ceil_sqrt(size);
  a_ = static_cast<std::uint32_t>(a);
  b_ = static_cast<std::uint32_t>((size - 1) / a + 1);
}

FeistelShuffle::Keys FeistelShuffle::keys_of(std::uint64_t epoch) const noexcept {
  const std::uint64_t key = key_of(size_, seed_, epoch);
  Keys keys;
  for (unsigned round = 0; round < rounds_; ++round) {
    const std::uint64_t drawn = draw(key, round);
    keys[round] = {static_cast<std::uint32_t>(drawn >> 32), static_cast<std::uint32_t>(drawn)};
  }
  return keys;
}

std::uint64_t FeistelShuffle::forward(const Keys& keys, std::uint64_t point) const noexcept {
  do {
    auto left = static_cast<std::uint32_t>(point / b_);
    auto right = static_cast<std::uint32_t>(point % b_);
    for (unsigned round = 0; round < rounds_; ++round) {
      const auto [before, within] = keys[round];
      if (round % 2 == 0) {
        left = subtract(left, hash_below(a_, right, before, within), a_);
      } else {
        right = subtract(right, hash_below(b_, left, before, within), b_);
      }
    }
    point = std::uint64_t{left} * b_ + right;
  } while (point >= size_);
  return point;
}

std::uint64_t FeistelShuffle::backward(const Keys& keys, std::uint64_t point) const noexcept {
  do {
    auto left = static_cast<std::uint32_t>(point / b_);
    auto right = static_cast<std::uint32_t>(point % b_);
    for (unsigned round = rounds_; round-- > 0;) {
      const auto [before, within] = keys[round];
      if (round % 2 == 0) {
        left = subtract(left, a_ - hash_below(a_, right, before, within), a_);
      } else {
        right = subtract(right, b_ - hash_below(b_, left, before, within), b_);
      }
    }
    point = std::uint64_t{left} * b_ + right;
  } while (point >= size_);
  return point;
}

template <bool kInverse>
void FeistelShuffle::map(std::uint64_t epoch, std::uint64_t first,
                         std::span<std::uint64_t> out) const noexcept {
  // A block costs about as much as this many single points, so fewer are cheaper one by one.
  constexpr std::size_t kWorthABlock = 10;
  const Keys keys = keys_of(epoch);
  const auto image = [&](std::uint64_t point) {
    return kInverse ? backward(keys, point) : forward(keys, point);
  };
  const auto block = kernel_ == Kernel::kBest && has_avx2() ? Kernels::widest<kInverse>
                                                            : Kernels::portable<kInverse>;
  while (out.size() >= kWorthABlock) {
    alignas(64) std::uint64_t images[Kernels::kLanes];
    const std::size_t count = std::min(Kernels::kLanes, out.size());
    block(*this, keys, first, images);
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = images[i] < size_ ? images[i] : image(images[i]);
    }
    first += count;
    out = out.subspan(count);
  }
  for (std::uint64_t& sample : out) sample = image(first++);
}

void FeistelShuffle::fill(std::uint64_t epoch, std::uint64_t first,
                          std::span<std::uint64_t> out) const noexcept {
  assert(first <= size_ && out.size() <= size_ - first);
  map<false>(epoch, first, out);
}

bool FeistelShuffle::positions(std::uint64_t epoch, std::uint64_t first,
                               std::span<std::uint64_t> out) const noexcept {
  if (first > size_ || out.size() > size_ - first) return false;
  map<true>(epoch, first, out);
  return true;
}

std::optional<std::uint64_t> FeistelShuffle::position_of(std::uint64_t epoch,
                                                         std::uint64_t sample) const noexcept {
  if (sample >= size_) return std::nullopt;
  return backward(keys_of(epoch), sample);
}

std::unique_ptr<Order> make_shuffle(std::uint64_t size, std::uint64_t seed) {
  if (size <= kLargestTable) return std::make_unique<TableShuffle>(size, seed);
  return std::make_unique<FeistelShuffle>(size, seed);
}

}  // namespace lowtide
