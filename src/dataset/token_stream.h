// token_stream.h - the tokens of many files as one stream: where each of them lies. Immutable, no
// I/O, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/extent.h"
#include "core/shards.h"
#include "dataset/widen.h"
#include "format/tokens.h"

namespace lowtide {

class TokenStream {
 public:
  // Without files: they are added before the first use, in the order of the stream.
  TokenStream() = default;
  // They agree in format and dtype; throws FormatError that names the first that does not,
  // std::invalid_argument for more files than 32 bits count.
  void add(const TokenLayout& layout, const Shard& shard);
  // Of files of which only the layouts are known.
  explicit TokenStream(const std::vector<TokenLayout>& layouts);

  [[nodiscard]] std::uint64_t size() const { return tokens_; }
  [[nodiscard]] const DType& dtype() const { return dtype_; }
  [[nodiscard]] TokenType type() const { return type_; }
  [[nodiscard]] std::uint64_t item_bytes() const { return token_bytes(type_); }
  [[nodiscard]] const std::string& format() const { return format_; }
  [[nodiscard]] std::shared_ptr<const Shards> shards() const { return shards_; }
  // The file in which a token lies.
  [[nodiscard]] std::string path_of(std::uint64_t token) const;
  // What grows with the number of files, their names included.
  [[nodiscard]] std::uint64_t held_bytes() const;

  // Appends the reads that bring `count` tokens from `first` on to `into`; shards are counted from
  // `first_shard`. Requires that they are there.
  void locate(std::uint64_t first, std::uint64_t count, std::uint32_t first_shard, std::byte* into,
              std::vector<Read>& out) const;
  // Reads that locate makes at most for so many tokens.
  [[nodiscard]] std::uint64_t most_reads(std::uint64_t count) const;

  // Of format, type and how many tokens lie in which file: not of paths.
  [[nodiscard]] std::uint64_t layout_hash() const;

 private:
  struct Run {
    std::uint64_t first_token, offset_bytes;
    std::uint32_t shard;
  };
  [[nodiscard]] std::size_t run_of(std::uint64_t token) const;

  std::string format_;
  DType dtype_;
  TokenType type_ = TokenType::u16;
  std::uint64_t tokens_ = 0;
  std::shared_ptr<Shards> shards_ = std::make_shared<Shards>();
  std::vector<std::uint64_t> first_of_;  // by shard
  std::vector<Run> runs_;                // and one more that starts at the end
};

}  // namespace lowtide
