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
    return longest_ * unit_bytes();
  }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return 1; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override {
    return stream_->most_reads(longest_);
  }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override {
    return stream_->size() * unit_bytes();
  }
  [[nodiscard]] std::string path(std::uint32_t shard) const override {
    return stream_->shards()->path(shard);
  }
  void locate(std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  [[nodiscard]] bool ragged() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t unit_bytes() const noexcept override { return stream_->item_bytes(); }
  void lengths(std::span<const std::uint64_t> samples, std::span<std::uint64_t> out) const override;
  void describe(std::uint64_t samples, std::span<const std::byte> batch,
                std::vector<Column>* columns) const override;

 private:
  const std::shared_ptr<const TokenStream> stream_;
  const std::shared_ptr<const Documents> documents_;
  std::uint64_t longest_ = 0;  // tokens
};

}  // namespace lowtide
