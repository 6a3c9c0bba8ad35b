// documents.h - where the documents of a token stream start. It turns the words of index files, or
// records, into tokens and holds as many of the starts as it may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/extent.h"
#include "dataset/offsets.h"
#include "dataset/token_stream.h"
#include "token_format/tokens.h"

namespace lowtide {

// Holds the start of every stride-th document and finds those between with two small reads. It
// opens nothing: the caller reads. Immutable. Any thread that may call `read`.
class Documents final : public Offsets {
 public:
  // Reads bytes of the index files; shard i is the index of layouts[i]. Throws if it cannot. Called
  // by the constructor, and later only if not all starts fit into memory.
  using ReadIndexes = std::function<void(std::span<const Read> reads)>;

  // `layouts` are those of the stream, and each has an index. Holds at most `most_bytes` (plus 8).
  // Throws what `read` throws.
  Documents(std::shared_ptr<const TokenStream> stream, const std::vector<TokenLayout>& layouts,
            ReadIndexes read, std::uint64_t most_bytes);

  // The bytes of the starts that it will hold.
  [[nodiscard]] static std::uint64_t table_bytes(const std::vector<TokenLayout>& layouts,
                                                 std::uint64_t most_bytes);
  // The same, plus its copies from `layouts`.
  [[nodiscard]] static std::uint64_t held_bytes(const std::vector<TokenLayout>& layouts,
                                                std::uint64_t most_bytes);

  [[nodiscard]] std::uint64_t size() const noexcept override { return documents_; }
  // Writes the first token of documents first .. first + out.size() - 1; that of size() is the end
  // of the stream. Requires first + out.size() <= size() + 1. Throws what `read` throws.
  void offsets(std::uint64_t first, std::span<std::uint64_t> out) const override;
  // Appends every token after `first` and before `last` at which a document starts. Throws what
  // `read` throws.
  void starts_between(std::uint64_t first, std::uint64_t last,
                      std::vector<std::uint64_t>* out) const;

 private:
  struct IndexFile {
    DocumentIndex index;
    std::vector<TokenExtent> extents;
    std::shared_ptr<const TokenRecords> records;
    std::vector<std::uint64_t> extent_tokens;  // before each extent, in the stream
    std::uint64_t first_document = 0;
    std::uint64_t first_token = 0;
    std::uint64_t end_token = 0;
  };
  [[nodiscard]] bool holds_all() const { return stride_ == 1 && table_.size() == documents_; }
  [[nodiscard]] std::size_t file_of(std::uint64_t document) const;
  [[nodiscard]] std::uint64_t token_at(const IndexFile& file, std::uint64_t sequence,
                                       std::int64_t pointer) const;
  template <typename Word>
  void read_words(std::size_t file, std::uint64_t array_bytes,
                  const std::vector<std::uint64_t>& entries, std::span<Word> out) const;
  void read_starts(std::size_t file, const std::vector<std::uint64_t>& documents,
                   std::span<std::uint64_t> out) const;
  void read_of_sequences(std::size_t file, const std::vector<std::uint64_t>& documents,
                         std::span<std::uint64_t> out) const;
  void read_after_ends(std::size_t file, const std::vector<std::uint64_t>& documents,
                       std::span<std::uint64_t> out) const;
  void read_byte_offsets(std::size_t file, const std::vector<std::uint64_t>& documents,
                         std::span<std::uint64_t> out) const;
  void look_up(std::uint64_t first, std::uint64_t stride, std::span<std::uint64_t> out) const;

  const std::shared_ptr<const TokenStream> stream_;
  ReadIndexes read_;
  std::vector<IndexFile> files_;
  std::uint64_t documents_ = 0;
  std::uint64_t stride_ = 1;
  std::vector<std::uint64_t> table_;  // the start of every stride_-th document
};

}  // namespace lowtide
