// stored_offsets.h - offsets in a file: the indptr of a sparse matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/token_type.h"
#include "dataset/offsets.h"
#include "dataset/rows.h"

namespace lowtide {

// Holds the length of every sample in 2 bytes, and every 64th offset; or holds nothing and reads
// two offsets per sample when it is asked. It opens nothing: the caller reads. Immutable. Any
// thread that may call `read`.
class StoredOffsets final : public Offsets {
 public:
  using ReadRows = std::function<void(std::span<const Read> reads)>;

  // Reads all of `stored`, an array of at least one integer, once. Throws FormatError, which names
  // the entry, unless they begin with 0, never decrease and end at `values` or before, and what
  // `read` throws. `held`: they take table_bytes().
  StoredOffsets(std::shared_ptr<const Rows> stored, ReadRows read, std::uint64_t values, bool held);

  // For this many samples.
  [[nodiscard]] static std::uint64_t table_bytes(std::uint64_t samples);

  [[nodiscard]] std::uint64_t size() const noexcept override { return samples_; }
  void offsets(std::uint64_t first, std::span<std::uint64_t> out) const override;
  void bounds(std::span<const std::uint64_t> samples, std::span<std::uint64_t> starts,
              std::span<std::uint64_t> ends) const override;
  [[nodiscard]] std::uint64_t longest() const override { return longest_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }  // of the last sample

 private:
  void check_all(std::uint64_t values, bool held);
  [[nodiscard]] std::uint64_t held_start(std::uint64_t sample) const;
  void read_entries(std::uint64_t first, std::span<std::uint64_t> out) const;
  [[nodiscard]] bool is_negative(std::uint64_t entry) const;  // as it is stored
  [[noreturn]] void refuse(std::uint64_t entry, std::uint64_t found, const std::string& why) const;

  const std::shared_ptr<const Rows> stored_;
  const ReadRows read_;
  const TokenType type_;
  const std::uint64_t samples_;
  std::uint64_t longest_ = 0;
  std::uint64_t end_ = 0;
  std::vector<std::uint64_t> bases_;    // of every kTogether-th sample
  std::vector<std::uint16_t> lengths_;  // empty: not held
};

}  // namespace lowtide
