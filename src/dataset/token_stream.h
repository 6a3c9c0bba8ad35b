// token_stream.h - the tokens of many files as one stream: where each token is. Immutable, no I/O,
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/extent.h"
#include "core/shards.h"
#include "dataset/widen.h"
#include "token_format/tokens.h"

namespace lowtide {

class TokenStream {
 public:
  // Starts without files; they must be added before the first use, in stream order.
  TokenStream() = default;
  // Files must agree in format and dtype. Throws FormatError, which names the first one that does
  // not, and std::invalid_argument if their number exceeds 32 bits.
  void add(const TokenLayout& layout, const Shard& shard);
  // For files of which only the layouts are known.
  explicit TokenStream(const std::vector<TokenLayout>& layouts);

  [[nodiscard]] std::uint64_t size() const { return tokens_; }
  [[nodiscard]] const DType& dtype() const { return dtype_; }
  [[nodiscard]] TokenType type() const { return type_; }
  [[nodiscard]] std::uint64_t item_bytes() const { return token_bytes(type_); }
  [[nodiscard]] const std::string& format() const { return format_; }
  // Whether the token between documents begins one; otherwise it ends one.
  [[nodiscard]] bool eot_begins() const { return eot_begins_; }
  [[nodiscard]] std::shared_ptr<const Shards> shards() const { return shards_; }
  // The file that contains a token.
  [[nodiscard]] std::string path_of(std::uint64_t token) const;
  // The bytes held that grow with the number of files, including their names and records.
  [[nodiscard]] std::uint64_t held_bytes() const;

  // Appends the reads that bring `count` tokens from `first` on to `into`; shards are numbered from
  // `first_shard`. Requires first + count <= size().
  void locate(std::uint64_t first, std::uint64_t count, std::uint32_t first_shard, std::byte* into,
              std::vector<Read>& out) const;
  // The most reads that locate makes for this many tokens.
  [[nodiscard]] std::uint64_t most_reads(std::uint64_t count) const;

  // A hash of the format, the type and the number of tokens per file, but not of the paths.
  [[nodiscard]] std::uint64_t layout_hash() const;

 private:
  struct Start {  // of an extent
    std::uint64_t first_token, offset_bytes;
    std::uint32_t shard;
  };
  // A run of contiguous tokens: an extent, or one document of a file with records.
  struct Place {
    std::size_t start = 0;       // in starts_
    std::uint64_t document = 0;  // of its records, if it has any

    [[nodiscard]] bool operator==(const Place& other) const = default;
  };
  [[nodiscard]] std::size_t start_before(std::uint64_t token) const;
  [[nodiscard]] const TokenRecords* records_at(std::size_t start) const;
  [[nodiscard]] Place place_of(std::uint64_t token) const;
  // The place after, which is the end mark at the end.
  [[nodiscard]] Place next(Place place) const;
  [[nodiscard]] std::uint64_t first_token(Place place) const;
  [[nodiscard]] std::uint64_t offset_bytes(Place place) const;
  [[nodiscard]] bool at_end(Place place) const { return place.start + 1 == starts_.size(); }

  std::string format_;
  bool eot_begins_ = false;
  DType dtype_;
  TokenType type_ = TokenType::u16;
  std::uint64_t tokens_ = 0;
  std::shared_ptr<Shards> shards_ = std::make_shared<Shards>();
  std::vector<std::uint64_t> first_of_;  // the first token of each shard
  std::vector<Start> starts_;            // of all extents, and the end of the last one
  // Of each shard, if they have any; then each of them that has tokens has one extent.
  std::vector<std::shared_ptr<const TokenRecords>> records_;
};

}  // namespace lowtide
