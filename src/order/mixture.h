// mixture.h - which source each position of a weighted mixture takes, exactly.
//
// Sources are the leaves of a binary tree of their weights. A node that has given c samples has
// taken round(c * share) of them from its left child. So any position is found in O(depth) without
// the ones before it, and so is its inverse. Everything after reading the weights is integer
// arithmetic: equal weights give equal mixtures on every machine and in every version. Any thread.
//
// Every prefix of n < 2^58 positions holds n * weight / sum of a source, to within 0.51 for two
// sources and to within 1.5 for more. The proof: each node above a leaf adds at most half a sample,
// times the leaf's part of what is below that node. In total that is
// (1 + w / W1 + w / W2 + ...) / 2, where w, W1, W2, ... are the weights from the leaf up to below
// the root. In a Huffman tree W2 >= W1 + w, W3 >= W2 + W1 and so on, which gives 1.68 if a leaf's
// sibling is tiny (W1 = w). Tiny weights are therefore kept apart: in ascending order, a weight
// above 3 times the sum of its group begins a new group. Each group is a Huffman tree, in which now
// W1 >= 4/3 w. Then the groups are joined from the lightest on; each exceeds twice the sum of all
// before it. The worst leaf has (1 + 3/4 + 3/7 + 3/11 + 3/18 + 3/29 + ...) / 2 < 1.45.
//
// The shares are rounded to 2^-64. Beyond 2^58 positions that adds n / 2^63, which is 1/2 at 2^62.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lowtide {

class Mixture {
 public:
  static constexpr std::uint64_t kMostSources = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  struct Place {
    std::uint32_t source;
    std::uint64_t index;  // how many positions before took this source

    [[nodiscard]] bool operator==(const Place& other) const = default;
  };

  // Takes 1 .. kMostSources weights, each finite and above 0. Otherwise throws
  // std::invalid_argument, which names the entry and its value. Only the ratios of weights count.
  explicit Mixture(std::span<const double> weights);

  [[nodiscard]] std::uint32_t sources() const noexcept;
  // The source at a position (below kMostPositions), and the index among that source's samples.
  [[nodiscard]] Place at(std::uint64_t position) const noexcept;
  // How many of the first `positions` (at most kMostPositions) come from a source (below
  // sources()).
  [[nodiscard]] std::uint64_t count(std::uint32_t source, std::uint64_t positions) const noexcept;
  // The position of the index-th sample of a source: the inverse of at(). kNever if it would be
  // kMostPositions or more.
  [[nodiscard]] std::uint64_t position_of(const Place& place) const noexcept;

 private:
  struct Node {
    std::uint64_t share = 0;  // of the left child, in units of 2^-64; 0 at a leaf
    std::uint32_t left = 0;   // the lighter child
    std::uint32_t right = 0;
    std::uint32_t parent = 0;  // the root is its own parent
  };
  class Grower;

  std::vector<Node> nodes_;  // the sources in order, then the inner nodes with the root last
};

}  // namespace lowtide
