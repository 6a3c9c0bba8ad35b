// lookahead_parts.h - what a Lookahead has under way: batches on their way to the consumer, and the
// sets of reads that bring them. Guarded by its lock, but for what is being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "loader/lookahead.h"

namespace lowtide {

// Batches that are read together: they are ready together.
struct Lookahead::Group {
  std::uint64_t left = 0;  // sample parts that have not come
};

// A batch on its way to the consumer.
struct Lookahead::Coming {
  Lease lease;
  std::uint64_t step = 0;
  std::shared_ptr<Group> group;  // nullptr: gathered from a window
  bool made = true;              // false: it must be made of what was read

  [[nodiscard]] bool landed() const { return group == nullptr || group->left == 0; }
  [[nodiscard]] bool ready() const { return made && landed(); }
};

// One set of reads on its way, for a group or for the window that is being read.
struct Lookahead::Piece final : ReadSet {
  Lookahead* loader = nullptr;
  std::shared_ptr<Group> group;                 // nullptr: the window
  std::uint64_t first_step = 0, last_step = 0;  // to which its samples belong
  bool flying = false;
  std::vector<std::uint64_t> samples;
  std::vector<std::byte*> targets;
  std::vector<Read> storage;

  void done(const Outcome& outcome) noexcept override { loader->landed(*this, outcome); }
};

}  // namespace lowtide
