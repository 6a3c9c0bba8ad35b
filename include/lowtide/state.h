// state.h - the position of a run: what a checkpoint of Batches or a Loader contains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// Plain values, which take less than 1 KB as JSON. A state counts delivered batches, not batches
// that were read ahead. A run can resume from it with any batch size and world size; nothing is
// replayed.
struct State {
  // Positions first .. last - 1 of an epoch are left out.
  struct Skipped {
    std::uint64_t epoch, first, last;
  };
  static constexpr std::uint32_t kFormat = 1;

  std::uint32_t format = kFormat;
  // Covers the data, the rows that you listed, and the weights of a mixture. nullopt: unknown, as
  // in the states of arrays that version 0.1.0 saved; the data is then not compared.
  std::optional<std::uint64_t> fingerprint = std::nullopt;
  std::uint64_t block_size = 0;  // of windows; 0 for rows of an array
  std::string order = {};        // a word of OrderKind, or "rows" if you listed them
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // in the order of the epoch, over all ranks
  std::uint64_t step = 0;      // the number of the next step
  std::uint64_t base = 0;      // of a mixture: windows before this epoch
  std::vector<Skipped> skipped = {};
};

}  // namespace lowtide
