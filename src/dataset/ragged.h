// ragged.h - samples of different lengths: the documents of a token stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "dataset/token_stream.h"

namespace lowtide {

// Sample i is document i, in the stream's own type. Empty documents are samples too.
class Ragged final : public Dataset {
 public:
  // Looks at the length of every document once. Throws what reading the index throws.
  Ragged(std::shared_ptr<const TokenStream> stream, std::shared_ptr<const Documents> documents);

  [[nodiscard]] std::uint64_t size() const noexcept override { return documents_->size(); }
  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override {
    return longest_ * stream_->item_bytes();
  }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return 1; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override {
    return stream_->most_reads(longest_);
  }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override {
    return stream_->size() * stream_->item_bytes();
  }
  [[nodiscard]] std::string path(std::uint32_t shard) const override {
    return stream_->shards()->path(shard);
  }
  [[nodiscard]] SampleField field(std::size_t number) const noexcept override;
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  [[nodiscard]] std::uint32_t tables() const noexcept override { return 1; }
  void lengths(std::uint32_t table, std::span<const std::uint64_t> samples,
               std::span<std::uint64_t> out) const override;

 private:
  const std::shared_ptr<const TokenStream> stream_;
  const std::shared_ptr<const Documents> documents_;
  std::uint64_t longest_ = 0;  // tokens
};

}  // namespace lowtide
