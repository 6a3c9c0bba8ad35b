// ragged.h - samples of different lengths: the documents of a token stream, or ranges of the rows
// of an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/offsets.h"
#include "dataset/rows.h"
#include "dataset/token_stream.h"

namespace lowtide {

// What samples are ranges of. Rows must be in C order.
using RaggedValues = std::variant<std::shared_ptr<const Rows>, std::shared_ptr<const TokenStream>>;

// Sample i is what the offsets i and i + 1 enclose, as stored. Empty samples are samples too.
class Ragged final : public Dataset {
 public:
  // Looks at the length of every sample once. Throws what the look-up throws. The files of a token
  // stream are numbered from `first_shard`; rows know their own numbers.
  Ragged(RaggedValues values, std::shared_ptr<const Offsets> offsets,
         std::uint32_t first_shard = 0);

  [[nodiscard]] std::uint64_t size() const noexcept override { return offsets_->size(); }
  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override {
    return longest_ * unit_.unit_bytes;
  }
  [[nodiscard]] SampleField field(std::size_t /*number*/) const noexcept override { return unit_; }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return 1; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override { return most_reads_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override {
    return end_ * unit_.unit_bytes;
  }
  [[nodiscard]] std::string path(std::uint32_t shard) const override;
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  [[nodiscard]] std::uint32_t tables() const noexcept override { return 1; }
  void lengths(std::uint32_t table, std::span<const std::uint64_t> samples,
               std::span<std::uint64_t> out) const override;

 private:
  const RaggedValues values_;
  const std::shared_ptr<const Offsets> offsets_;
  const std::uint32_t first_shard_;
  SampleField unit_;
  std::uint64_t longest_ = 0;  // units
  std::uint64_t end_ = 0;      // units
  std::uint64_t most_reads_ = 1;
};

}  // namespace lowtide
