// lookahead_parts.h - what a Lookahead has in progress: upcoming batches, and the sets of reads for
// them. Guarded by its lock, except for the bytes that are being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "loader/lookahead.h"

namespace lowtide {

// Batches that are read together and become ready together.
struct Lookahead::Group {
  std::uint64_t left = 0;  // sample parts that have not arrived
};

// A batch that is being read or is ready for the consumer.
struct Lookahead::Coming {
  Batch batch;
  std::uint64_t step = 0;
  std::shared_ptr<Group> group;  // nullptr: gathered from a window
  bool made = true;              // false: it must still be made from the samples as read

  [[nodiscard]] Buffer& buffer() const { return Buffer::of(batch); }
  [[nodiscard]] bool landed() const { return group == nullptr || group->left == 0; }
  [[nodiscard]] bool ready() const { return made && landed(); }
};

// One set of reads in flight, for a group or for the window that is being read.
struct Lookahead::Piece final : ReadSet {
  Lookahead* loader = nullptr;
  std::shared_ptr<Group> group;                 // nullptr: the window
  std::uint64_t first_step = 0, last_step = 0;  // the steps of its samples
  bool flying = false;
  std::vector<std::uint64_t> samples;
  std::vector<std::byte*> targets;
  std::vector<Read> storage;

  void done(const Outcome& outcome) noexcept override { loader->landed(*this, outcome); }
};

}  // namespace lowtide
