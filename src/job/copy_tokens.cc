#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "job/array_output.h"
#include "job/copy.h"
#include "job/cuts.h"
#include "os/memory.h"
#include "token_format/tokens.h"
#include "writer/store_tokens.h"
#include "writer/token_writer.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kDocumentOffsets = 4096;  // that are read at a time

using TokenBytes = std::span<const std::byte>;

// Where tokens go. One thread at a time.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // With `more`, the document goes on with the next call.
  virtual void append(TokenBytes tokens, bool more) = 0;
  virtual void publish(const Destination& destination) = 0;
};

class FileSink final : public TokenSink {
 public:
  FileSink(const Copy& copy, TokenType type, const CopyMemory& sizes)
      : type_(type),
        writer_(copy.destination.path, {.format = copy.format,
                                        .dtype = copy.dtype.descr(),
                                        .memory_bytes = sizes.token_writer_bytes}) {
    writer_.sign(copy.job);
  }
  void append(TokenBytes tokens, bool more) override {
    writer_.append(type_, tokens.data(), tokens.size() / token_bytes(type_), more);
  }
  void publish(const Destination& destination) override {
    destination.check_free();
    writer_.close();
  }

 private:
  const TokenType type_;
  TokenWriter::Impl writer_;
};

class ArraySink final : public TokenSink {
 public:
  ArraySink(const Copy& copy, TokenType type, const CopyMemory& sizes)
      : type_(type),
        to_(token_type(copy.dtype).value()),
        stored_(sizes.output_bytes),
        output_(copy.destination.path, copy.dtype, copy.shape, sizes.output_bytes,
                sizes.dirty_chunk_bytes, has_header(copy.format)) {
    output_.sign(copy.job);
  }
  void append(TokenBytes tokens, bool more) override {
    const std::uint64_t most = stored_.size() / token_bytes(to_);
    for (std::uint64_t left = tokens.size() / token_bytes(type_); left > 0;) {
      const std::uint64_t now = std::min(left, most);
      if (const auto unfit = first_unfit(type_, tokens.data(), now, to_)) {
        throw std::invalid_argument(unfit_text(documents_, begun_ + *unfit, type_,
                                               &tokens[*unfit * token_bytes(type_)], to_));
      }
      store_tokens(type_, tokens.data(), now, to_, stored_.data());
      output_.append(std::span(stored_).first(now * token_bytes(to_)));
      tokens = tokens.subspan(now * token_bytes(type_));
      begun_ += now;
      left -= now;
    }
    if (more) return;
    begun_ = 0;
    ++documents_;
  }
  void publish(const Destination& destination) override {
    output_.sync();
    destination.check_free();
    output_.publish();
  }

 private:
  const TokenType type_, to_;
  std::vector<std::byte> stored_;
  ArrayOutput output_;
  std::uint64_t documents_ = 0;
  std::uint64_t begun_ = 0;  // tokens of the current document
};

// The tokens of a source in turn, through a buffer.
class TokenBlocks {
 public:
  TokenBlocks(const OpenSource& source, std::span<std::byte> buffer, JobWatch& watch)
      : source_(source),
        dtype_(source.tokens ? source.tokens->dtype() : source.array->dtype()),
        size_(source.tokens ? source.tokens->size() : source.array->rows()),
        item_bytes_(dtype_.itemsize_bytes),
        buffer_(buffer.first(buffer.size() / item_bytes_ * item_bytes_)),
        watch_(watch) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t left() const { return size_ - at_; }
  [[nodiscard]] std::uint64_t item_bytes() const { return item_bytes_; }
  // The next tokens, at most `most`, at least one if there are any left.
  [[nodiscard]] TokenBytes next(std::uint64_t most) {
    if (at_ == end_) {
      const std::uint64_t now = std::min(buffer_.size() / item_bytes_, size_ - end_);
      const std::span<std::byte> out = buffer_.first(now * item_bytes_);
      source_.tokens ? source_.tokens->read(end_, now, out) : source_.array->read(end_, now, out);
      watch_.advance(out.size());
      first_ = end_;
      end_ += now;
    }
    const std::uint64_t count = std::min(most, end_ - at_);
    const std::uint64_t from = (at_ - first_) * item_bytes_;
    at_ += count;
    return TokenBytes(buffer_).subspan(from, count * item_bytes_);
  }

 private:
  const OpenSource& source_;
  const DType dtype_;
  const std::uint64_t size_, item_bytes_;
  const std::span<std::byte> buffer_;
  JobWatch& watch_;
  std::uint64_t first_ = 0, at_ = 0, end_ = 0;  // in tokens: the buffer has [first_, end_)
};

void copy_document(TokenBlocks* blocks, std::uint64_t count, TokenSink* sink) {
  if (count == 0) return sink->append({}, false);
  while (count > 0) {
    const TokenBytes piece = blocks->next(count);
    count -= piece.size() / blocks->item_bytes();
    sink->append(piece, /*more=*/count > 0);
  }
}

void copy_recorded(const Tokens& tokens, TokenBlocks* blocks, TokenSink* sink) {
  const std::uint64_t documents = *tokens.documents();
  std::vector<std::int64_t> offsets;
  for (std::uint64_t first = 0; first < documents;) {
    const std::uint64_t count = std::min(kDocumentOffsets, documents - first);
    offsets.resize(static_cast<std::size_t>(count + 1));
    tokens.document_offsets(first, offsets);
    for (std::size_t i = 0; i < count; ++i)
      copy_document(blocks, static_cast<std::uint64_t>(offsets[i + 1] - offsets[i]), sink);
    first += count;
  }
}

// Cuts the stream at the token between documents.
void copy_cut(const Tokens& tokens, TokenBlocks* blocks, TokenSink* sink) {
  const CutFinder finder(tokens);
  const std::uint64_t item = blocks->item_bytes();
  bool open = false;  // something of the current document was passed on
  while (blocks->left() > 0) {
    const TokenBytes block = blocks->next(blocks->left());
    std::size_t begin = 0;
    finder.scan(block, [&](std::size_t token) {
      const std::size_t cut = token * item;
      if (cut == begin && !open) return true;  // nothing before the first document
      sink->append(block.subspan(begin, cut - begin), /*more=*/false);
      open = false;
      begin = cut;
      return true;
    });
    if (begin == block.size()) continue;
    sink->append(block.subspan(begin), /*more=*/true);
    open = true;
  }
  if (open) sink->append({}, /*more=*/false);
}

}  // namespace

void copy_tokens(const Copy& copy, const CopyMemory& sizes, JobWatch& watch) {
  const Memory buffer(sizes.block_bytes, /*prefault=*/false, "a block of tokens");
  std::unique_ptr<TokenSink> sink;
  for (std::size_t i = 0; i < copy.sources.size(); ++i) {
    const OpenSource source = open_same_source(copy.sources[i], copy.stamps[i], sizes.source_bytes);
    TokenBlocks blocks(source, buffer.bytes(), watch);
    if (!sink) {
      const TokenType type =
          token_type(source.tokens ? source.tokens->dtype() : source.array->dtype()).value();
      if (copy.kind == CopyKind::tokens) {
        sink = std::make_unique<FileSink>(copy, type, sizes);
      } else {
        sink = std::make_unique<ArraySink>(copy, type, sizes);
      }
    }
    if (source.tokens && source.tokens->documents()) {
      copy_recorded(*source.tokens, &blocks, sink.get());
    } else if (source.tokens && source.tokens->eot()) {
      copy_cut(*source.tokens, &blocks, sink.get());
    } else {
      copy_document(&blocks, blocks.size(), sink.get());
    }
    check_same(source, copy.stamps[i]);
  }
  sink->publish(copy.destination);
}

void copy_arrays(const Copy& copy, const CopyMemory& sizes, JobWatch& watch) {
  const Memory buffer(sizes.block_bytes, /*prefault=*/false, "a block of rows");
  ArrayOutput output(copy.destination.path, copy.dtype, copy.shape, sizes.output_bytes,
                     sizes.dirty_chunk_bytes, has_header(copy.format));
  output.sign(copy.job);
  for (std::size_t i = 0; i < copy.sources.size(); ++i) {
    const OpenSource source = open_same_source(copy.sources[i], copy.stamps[i], sizes.source_bytes);
    // In C order, rows may be cut anywhere.
    const Array array =
        source.array->fortran_order() ? *source.array : source.array->flat(sizes.source_bytes);
    const std::uint64_t row_bytes = std::max<std::uint64_t>(1, array.row_bytes());
    const std::uint64_t most = std::max<std::uint64_t>(1, buffer.size() / row_bytes);
    for (std::uint64_t first = 0; first < array.rows() && array.row_bytes() > 0; first += most) {
      const std::uint64_t now = std::min(most, array.rows() - first);
      const std::span<std::byte> out = buffer.bytes().first(now * row_bytes);
      array.read(first, now, out);
      output.append(out);
      watch.advance(out.size());
    }
    check_same(source, copy.stamps[i]);
  }
  output.sync();
  copy.destination.check_free();
  output.publish();
}

}  // namespace lowtide
