#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "dataset/token_stream.h"
#include "face/tokens_impl.h"
#include "inspect/check.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// The ends of the documents, in order, fetched in blocks: an index can be as large as the data.
class DocumentEnds {
 public:
  explicit DocumentEnds(const Tokens& tokens)
      : tokens_(tokens), documents_(tokens.documents().value_or(0)) {}

  // Calls `check` once with the last token of every document that ends inside [first, last).
  template <typename Check>
  void for_ends(std::uint64_t first, std::uint64_t last, const Check& check) {
    while (fill()) {
      const auto end = static_cast<std::uint64_t>(ends_[next_]);
      if (end > last) return;
      ++next_;
      const bool empty = end == before_;
      before_ = end;
      if (!empty && end > first) check(end - 1);
    }
  }

 private:
  bool fill() {
    if (next_ < ends_.size()) return true;
    const std::uint64_t count = std::min<std::uint64_t>(documents_ - done_, 4096);
    if (count == 0) return false;
    ends_.resize(count);
    tokens_.document_offsets(done_ + 1, ends_);
    done_ += count;
    next_ = 0;
    return true;
  }

  const Tokens& tokens_;
  std::uint64_t documents_;
  std::uint64_t done_ = 0;    // documents whose end was fetched
  std::uint64_t before_ = 0;  // where the document before ended
  std::vector<std::int64_t> ends_;
  std::size_t next_ = 0;
};

// Reads the headers of a file again. The dtype is known by now, also if only an index.json has it.
TokenLayout layout_again(const Tokens& tokens, const std::string& path, bool every_header) {
  TokenGiven given;
  given.dtype = tokens.dtype();
  given.format = tokens.format();
  given.every_header = every_header;
  const std::vector<TokenLayout>& layouts = Tokens::Impl::of(tokens)->layouts;
  if (!layouts.empty() && !layouts.front().key.empty()) given.key = layouts.front().key;
  given.most_record_bytes = UINT64_MAX;  // as much as is open already
  return open_token_layout(token_file(std::make_shared<File>(path)), open_beside, given);
}

// The headers of documents that were not needed to open the files.
void check_headers(const Tokens& tokens) {
  const std::vector<TokenLayout>& layouts = Tokens::Impl::of(tokens)->layouts;
  for (const TokenLayout& layout : layouts) {
    if (layout.records) (void)layout_again(tokens, layout.data_path, /*every_header=*/true);
  }
}

// The file and byte offset of a token. Only a fault needs it.
std::string where(const Tokens& tokens, std::uint64_t token) {
  std::vector<TokenLayout> layouts;
  for (const std::string& path : tokens.paths()) {
    layouts.push_back(layout_again(tokens, path, /*every_header=*/false));
  }
  const TokenStream stream(layouts);
  std::vector<Read> reads;
  std::byte nowhere[8];
  stream.locate(token, 1, 0, nowhere, reads);
  return stream.path_of(token) + ": token " + std::to_string(token) + " at byte " +
         std::to_string(reads.at(0).from.offset_bytes);
}

template <typename Token>
class TokenCheck {
 public:
  TokenCheck(const Tokens& tokens, const CheckOptions& options)
      : tokens_(tokens), options_(options), begins_(eot_begins(tokens.format())), ends_(tokens) {}

  void check_block(std::uint64_t first, std::span<const Token> block) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      highest_ = std::max(highest_, block[i]);
      lowest_ = std::min(lowest_, block[i]);
    }
    check_vocab(first, block);
    if (!options_.eot) return;
    if (tokens_.documents()) {
      ends_.for_ends(first, first + block.size(),
                     [&](std::uint64_t token) { check_end(token, block[token - first]); });
      return;
    }
    const std::uint64_t mark = begins_ ? 0 : tokens_.size() - 1;
    if (mark >= first && mark - first < block.size()) check_end(mark, block[mark - first]);
  }

  [[nodiscard]] std::optional<std::uint64_t> highest() const {
    if (std::cmp_less(highest_, 0)) return std::nullopt;
    return static_cast<std::uint64_t>(highest_);
  }

 private:
  [[nodiscard]] bool outside(Token token) const {
    return std::cmp_less(token, 0) || std::cmp_greater_equal(token, *options_.vocab);
  }

  // The extremes of the block almost always show that all is well, without a second pass.
  void check_vocab(std::uint64_t first, std::span<const Token> block) const {
    if (!options_.vocab || !(outside(highest_) || outside(lowest_))) return;
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (!outside(block[i])) continue;
      throw FormatError(where(tokens_, first + i) + ": expected 0 or more and below vocab " +
                        std::to_string(*options_.vocab) + ", found " + std::to_string(block[i]));
    }
  }

  void check_end(std::uint64_t token_index, Token token) const {
    if (std::cmp_equal(token, *options_.eot)) return;
    throw FormatError(where(tokens_, token_index) + ": expected eot " +
                      std::to_string(*options_.eot) + " where a document " +
                      (begins_ ? "begins" : "ends") + ", found " + std::to_string(token));
  }

  const Tokens& tokens_;
  const CheckOptions& options_;
  const bool begins_;  // the token between documents begins one
  DocumentEnds ends_;
  Token highest_ = std::numeric_limits<Token>::lowest();
  Token lowest_ = std::numeric_limits<Token>::max();
};

template <typename Token>
void check_as(const Tokens& tokens, const CheckOptions& options, CheckResult* result) {
  const std::uint64_t most = kCheckBlockBytes / sizeof(Token);
  const auto block = std::make_unique_for_overwrite<Token[]>(std::min(most, tokens.size()));
  const std::uint64_t all_bytes = tokens.size() * sizeof(Token);
  TokenCheck<Token> check(tokens, options);
  for (std::uint64_t first = 0; first < tokens.size(); first += most) {
    const std::uint64_t count = std::min(most, tokens.size() - first);
    const std::span<Token> read(block.get(), count);
    tokens.read(first, count, std::as_writable_bytes(read));
    check.check_block(first, read);
    result->read_bytes += count * sizeof(Token);
    if (options.progress) options.progress(result->read_bytes, all_bytes);
  }
  if (tokens.size() > 0) result->highest_token = check.highest();
}

void note_unused(const Tokens& tokens, CheckResult* result) {
  if (!tokens.documents()) return;  // without an index, all of the data is tokens
  const TokenLayout& first = Tokens::Impl::of(tokens)->layouts.front();
  if (first.documents->path == first.data_path) return;  // the rest is the index
  std::uint64_t data_bytes = 0;
  for (std::size_t i = 0; i < tokens.paths().size(); ++i) {
    data_bytes += result->info.files.at(i).bytes;
  }
  const std::uint64_t used_bytes = tokens.size() * tokens.dtype().itemsize_bytes;
  if (used_bytes >= data_bytes) return;  // sequences may overlap
  result->notes.push_back(std::to_string(data_bytes - used_bytes) +
                          " bytes of the data are not covered by any sequence of the index");
}

}  // namespace

void check_tokens(const Tokens& tokens, const CheckOptions& options, CheckResult* result) {
  note_unused(tokens, result);
  check_headers(tokens);
  const bool is_signed = tokens.dtype().kind == 'i';
  switch (tokens.dtype().itemsize_bytes) {
    case 1:
      return is_signed ? check_as<std::int8_t>(tokens, options, result)
                       : check_as<std::uint8_t>(tokens, options, result);
    case 2:
      return is_signed ? check_as<std::int16_t>(tokens, options, result)
                       : check_as<std::uint16_t>(tokens, options, result);
    case 4:
      return is_signed ? check_as<std::int32_t>(tokens, options, result)
                       : check_as<std::uint32_t>(tokens, options, result);
    default:
      return is_signed ? check_as<std::int64_t>(tokens, options, result)
                       : check_as<std::uint64_t>(tokens, options, result);
  }
}

}  // namespace lowtide
