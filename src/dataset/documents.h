// documents.h - where the documents of a token stream start. Starts that do not fit into memory are
// read from the index files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataset/token_stream.h"
#include "format/tokens.h"
#include "os/files.h"
#include "os/fork_notice.h"

namespace lowtide {

// Holds the start of every stride-th document and finds those between with a few small reads. Any
// thread, also in a forked child, which opens the index files again.
class Documents {
 public:
  // `layouts` are those of the stream. Each has an index; `files` has the indexes in the same
  // order. Holds at most `most_bytes` (plus 8). Reads the indexes; throws IoError.
  Documents(std::shared_ptr<const TokenStream> stream, const std::vector<TokenLayout>& layouts,
            std::shared_ptr<Files> files, std::uint64_t most_bytes);
  ~Documents() { (void)files(); }
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  // The bytes of the starts that it will hold.
  [[nodiscard]] static std::uint64_t table_bytes(const std::vector<TokenLayout>& layouts,
                                                 std::uint64_t most_bytes);
  // The same, plus its copies from `layouts`.
  [[nodiscard]] static std::uint64_t held_bytes(const std::vector<TokenLayout>& layouts,
                                                std::uint64_t most_bytes);

  [[nodiscard]] std::uint64_t size() const { return documents_; }
  // Writes the first token of documents first .. first + out.size() - 1; that of size() is the end
  // of the stream. Requires first + out.size() <= size() + 1.
  void offsets(std::uint64_t first, std::span<std::uint64_t> out) const;
  // Appends every token after `first` and before `last` at which a document starts.
  void starts_between(std::uint64_t first, std::uint64_t last,
                      std::vector<std::uint64_t>* out) const;

 private:
  struct Part {
    DocumentIndex index;
    std::vector<TokenRun> runs;
    std::vector<std::uint64_t> run_tokens;  // before each run, in the stream
    std::uint64_t first_document = 0;
    std::uint64_t end_token = 0;
  };
  [[nodiscard]] std::size_t part_of(std::uint64_t document) const;
  [[nodiscard]] std::uint64_t offset(std::uint64_t document) const;
  [[nodiscard]] std::uint64_t token_at(const Part& part, std::uint64_t sequence,
                                       std::int64_t pointer) const;
  void read_part(std::size_t part, std::uint64_t first, std::span<std::uint64_t> out) const;
  [[nodiscard]] Files& files() const;  // of this process
  void read_words(std::size_t part, std::uint64_t offset_bytes, std::span<std::int64_t> out) const;

  std::shared_ptr<const TokenStream> stream_;
  mutable ForkNotice fork_;
  mutable std::shared_ptr<Files> files_;
  std::vector<Part> parts_;
  std::uint64_t documents_ = 0;
  std::uint64_t stride_ = 1;
  std::vector<std::uint64_t> table_;  // the start of every stride_-th document
};

}  // namespace lowtide
