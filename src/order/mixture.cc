#include "order/mixture.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "order/weights.h"
#include "order/wide.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;  // in 2^-64

void validate(std::span<const double> weights) {
  if (weights.empty()) throw std::invalid_argument("weights: none given; give one per source");
  if (weights.size() > Mixture::kMostSources) {
    throw std::invalid_argument("weights: " + std::to_string(weights.size()) +
                                " given; at most 1048576 sources can be mixed");
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i]) && weights[i] > 0) continue;
    refuse_weight(i, weights[i], "each must be a number above 0");
  }
}

// Weights as integers of up to 95 bits. Sums are then exact and the same on every machine, and
// weights down to 2^-42 of the heaviest keep all their bits.
std::vector<Wide> to_integers(std::span<const double> weights) {
  constexpr int kMantissaBits = 53;
  constexpr int kBits = 95;
  const int top = std::ilogb(*std::max_element(weights.begin(), weights.end()));
  std::vector<Wide> integers;
  integers.reserve(weights.size());
  for (const double weight : weights) {
    const int exponent = std::ilogb(weight);
    const auto mantissa =
        static_cast<std::uint64_t>(std::scalbn(weight, kMantissaBits - 1 - exponent));
    const int shift = kBits - kMantissaBits - (top - exponent);
    const Wide shifted = shift >= 0               ? Wide{mantissa} << shift
                         : shift > -kMantissaBits ? Wide{mantissa} >> -shift
                                                  : 0;
    integers.push_back(std::max<Wide>(shifted, 1));
  }
  return integers;
}

// part / (part + rest) in units of 2^-64, rounded; at least 1, because it is a divisor later. Bit
// by bit, because part * 2^64 does not fit.
std::uint64_t share_of(Wide part, Wide rest) {
  const Wide whole = part + rest;
  std::uint64_t share = 0;
  for (int bit = 0; bit < 64; ++bit) {
    part *= 2;
    share *= 2;
    if (part >= whole) {
      part -= whole;
      ++share;
    }
  }
  if (part * 2 >= whole) ++share;
  return std::max<std::uint64_t>(share, 1);
}

// How many of c samples belong to the left child: the high half. The low half shows when its next
// one comes.
[[gnu::always_inline]] inline Wide left_of(std::uint64_t c, std::uint64_t share) noexcept {
  return Wide{c} * share + kHalf;
}

}  // namespace

// Joins nodes until one is left.
class Mixture::Grower {
 public:
  explicit Grower(std::span<const double> weights) : weights_(to_integers(weights)) {
    nodes_.resize(weights_.size());
    nodes_.reserve(2 * weights_.size() - 1);
    weights_.reserve(2 * weights_.size() - 1);
  }

  std::vector<Node> grow() {
    std::vector<std::uint32_t> ascending(weights_.size());
    std::iota(ascending.begin(), ascending.end(), 0U);
    std::stable_sort(ascending.begin(), ascending.end(), [this](std::uint32_t a, std::uint32_t b) {
      return weights_[a] < weights_[b];
    });
    std::span<const std::uint32_t> left = ascending;
    std::uint32_t root = 0;
    for (bool first = true; !left.empty(); first = false) {
      const std::size_t size = group(left);
      const std::uint32_t tree = huffman(left.first(size));
      root = first ? tree : join(root, tree);
      left = left.subspan(size);
    }
    nodes_[root].parent = root;
    return std::move(nodes_);
  }

 private:
  // How many of the sources, in ascending order, form the next group; see mixture.h.
  [[nodiscard]] std::size_t group(std::span<const std::uint32_t> ascending) const {
    constexpr Wide kGap = 3;
    Wide sum = weights_[ascending[0]];
    std::size_t size = 1;
    for (; size < ascending.size(); ++size) {
      const Wide next = weights_[ascending[size]];
      if (next > kGap * sum) break;
      sum += next;
    }
    return size;
  }

  // Joined nodes are created in ascending order too, so the lightest node is always at the front of
  // one of two queues.
  std::uint32_t huffman(std::span<const std::uint32_t> leaves) {
    if (leaves.size() == 1) return leaves[0];
    auto inner = static_cast<std::uint32_t>(nodes_.size());
    const auto root = inner + static_cast<std::uint32_t>(leaves.size()) - 2;
    std::size_t leaf = 0;
    const auto lightest = [&] {
      const bool take_inner = leaf == leaves.size() ||
                              (inner < nodes_.size() && weights_[inner] < weights_[leaves[leaf]]);
      return take_inner ? inner++ : leaves[leaf++];
    };
    while (nodes_.size() <= root) {
      const std::uint32_t lighter = lightest();
      join(lighter, lightest());
    }
    return root;
  }

  std::uint32_t join(std::uint32_t lighter, std::uint32_t heavier) {
    const auto parent = static_cast<std::uint32_t>(nodes_.size());
    nodes_[lighter].parent = parent;
    nodes_[heavier].parent = parent;
    nodes_.push_back({share_of(weights_[lighter], weights_[heavier]), lighter, heavier, parent});
    weights_.push_back(weights_[lighter] + weights_[heavier]);
    return parent;
  }

  std::vector<Wide> weights_;  // of nodes_
  std::vector<Node> nodes_;
};

Mixture::Mixture(std::span<const double> weights) {
  validate(weights);
  nodes_ = Grower(weights).grow();
}

std::uint32_t Mixture::sources() const noexcept {
  return static_cast<std::uint32_t>((nodes_.size() + 1) / 2);
}

Mixture::Place Mixture::at(std::uint64_t position) const noexcept {
  assert(position < kMostPositions);
  auto node = static_cast<std::uint32_t>(nodes_.size() - 1);
  while (node >= sources()) {
    const Node& here = nodes_[node];
    const Wide product = left_of(position, here.share);
    const auto left = static_cast<std::uint64_t>(product >> 64);
    const bool goes_left = static_cast<std::uint64_t>((product + here.share) >> 64) != left;
    position = goes_left ? left : position - left;
    node = goes_left ? here.left : here.right;
  }
  return {node, position};
}

std::uint64_t Mixture::count(std::uint32_t source, std::uint64_t positions) const noexcept {
  assert(source < nodes_.size() && positions <= kMostPositions);
  const std::uint32_t parent = nodes_[source].parent;
  if (parent == source) return positions;
  const std::uint64_t above = count(parent, positions);
  const auto left = static_cast<std::uint64_t>(left_of(above, nodes_[parent].share) >> 64);
  return nodes_[parent].left == source ? left : above - left;
}

// The left child's sample k comes just before the first c with round(c * share) > k, which is the
// least c with c * share >= k + 1/2. The right child's comes just before the least c with
// c * (1 - share) > k + 1/2, because halves go to the left child.
std::uint64_t Mixture::position_of(const Place& place) const noexcept {
  assert(place.source < sources());
  std::uint64_t k = place.index;
  std::uint32_t node = place.source;
  while (k < kMostPositions && nodes_[node].parent != node) {
    const Node& above = nodes_[nodes_[node].parent];
    const Wide scaled = (Wide{k} << 64) + kHalf;
    const Wide position =
        above.left == node ? (scaled - 1) / above.share : scaled / (std::uint64_t{0} - above.share);
    k = static_cast<std::uint64_t>(std::min<Wide>(position, kNever));
    node = nodes_[node].parent;
  }
  return k < kMostPositions ? k : kNever;
}

}  // namespace lowtide
