// units.h - what a shuffle moves: rows, windows, documents or ragged rows, read in the order of the
// source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "job/cuts.h"
#include "job/source.h"

namespace lowtide {

// Facts about all units of a source.
struct UnitShape {
  std::uint64_t units = 0;
  bool ragged = false;           // of different lengths
  std::uint64_t item_bytes = 0;  // of one unit; of one element if ragged
  std::uint64_t total_bytes = 0;
  std::uint64_t largest_bytes = 0;  // of the largest unit
  // Of documents that nothing but a token separates.
  std::optional<Cuts> cuts = std::nullopt;

  // What a unit takes in a run file beyond its bytes: its length, if it must be known.
  [[nodiscard]] std::uint64_t extra_bytes() const { return ragged ? sizeof(std::uint64_t) : 0; }
};

// The units of an open source, which it borrows. One thread at a time.
class Units {
 public:
  // `shape` is what measure() found, if it was called before. Throws std::invalid_argument if the
  // source has no such units.
  Units(const OpenSource& source, Unit unit, std::uint64_t block_size, const UnitShape* shape);

  // Reads all offsets, if there are any; all tokens, if documents must be found. Throws FormatError
  // for wrong offsets.
  [[nodiscard]] UnitShape measure() const;

  // Reads units first, first + 1, ... into `room`: at most `most`, at least one, as many as fit.
  // The room must hold the largest unit (of windows, one token more). Returns how many.
  std::size_t load(std::uint64_t first, std::uint64_t most, std::span<std::byte> room);
  // The index-th of the units loaded last, in that room.
  [[nodiscard]] std::span<const std::byte> loaded(std::size_t index) const {
    if (!ragged_) return {room_ + index * stride_bytes_, item_bytes_};
    return {room_ + (starts_[index] - starts_[0]) * item_bytes_,
            (starts_[index + 1] - starts_[index]) * item_bytes_};
  }
  // What it holds per unit that is loaded at a time.
  static constexpr std::uint64_t kTableBytes = sizeof(std::uint64_t);

 private:
  void read_starts(std::uint64_t first, std::span<std::uint64_t> out) const;
  void read_items(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  [[nodiscard]] UnitShape measure_cut() const;
  std::size_t load_cut(std::uint64_t first, std::uint64_t most, std::span<std::byte> room);
  void seek_cut(std::uint64_t first, std::span<std::byte> room);

  const OpenSource& source_;
  bool ragged_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t item_bytes_ = 0;    // as in UnitShape
  std::uint64_t stride_bytes_ = 0;  // from one unit to the next, if not ragged
  std::uint64_t block_size_ = 0;    // of windows
  std::uint64_t values_ = 0;        // elements that there are, if ragged
  std::vector<std::uint64_t> starts_;
  std::optional<CutFinder> finder_;  // if documents must be found
  Cuts cuts_;
  std::uint64_t next_ = 0;        // the document that is loaded next
  std::uint64_t next_token_ = 0;  // where it begins
  const std::byte* room_ = nullptr;
};

}  // namespace lowtide
