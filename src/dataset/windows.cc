#include "dataset/windows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/checked.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kLineBytes = 64;  // arrays start on a cache line
// Keeps a batch of 8-byte tokens, with x, y, positions and cu_seqlens, below the 2^62 bytes that
// Dataset::batch_bytes promises.
constexpr std::uint64_t kMostBatchTokens = std::uint64_t{1} << 56;

}  // namespace

// Unless windows may start anywhere, neighbours share a token: the last one of y in a window is the
// first one of x in the next.
std::uint64_t Windows::count(std::uint64_t tokens, const WindowsOptions& options) {
  if (tokens <= options.block_size) return 0;
  return options.anywhere ? tokens - options.block_size : (tokens - 1) / options.block_size;
}

Windows::Windows(std::vector<WindowsSource> sources, const WindowsOptions& options)
    : sources_(std::move(sources)), options_(options), first_{0} {
  const std::uint64_t tokens = options_.block_size + 1;
  // Samples of all sources get the size of the widest type: in a buffer, row i is always found at
  // i * sample_bytes_.
  for (const WindowsSource& source : sources_) {
    const TokenStream& stream = *source.stream;
    first_.push_back(first_.back() + count(stream.size(), options_));
    sample_bytes_ = std::max(sample_bytes_, tokens * stream.item_bytes());
    most_reads_ = std::max(most_reads_, stream.most_reads(tokens));
    data_bytes_ += stream.size() * stream.item_bytes();
  }
}

Windows::Shape Windows::shape(std::uint64_t rows) const {
  std::uint64_t tokens = 0;
  if (!checked_mul(rows, options_.block_size, &tokens) || tokens > kMostBatchTokens) {
    throw std::invalid_argument("batch_size: " + std::to_string(rows) +
                                " windows exceed the address space; use a smaller batch_size");
  }
  Shape shape;
  shape.y_bytes = round_up(tokens * token_bytes(options_.to), kLineBytes);
  shape.positions_bytes = shape.end_bytes = 2 * shape.y_bytes;
  if (!options_.separate) return shape;
  if (tokens >= std::numeric_limits<std::int32_t>::max()) {
    throw std::invalid_argument("documents: a batch of " + std::to_string(tokens) +
                                " tokens does not fit cu_seqlens, which is int32; use a smaller "
                                "batch_size or block_size");
  }
  // cu_seqlens has room for the worst case, a document per token. How many entries it really has
  // depends on the data, so the count is part of the batch.
  shape.cu_count_bytes =
      round_up(shape.positions_bytes + tokens * sizeof(std::int32_t), kLineBytes);
  shape.cu_seqlens_bytes = shape.cu_count_bytes + kLineBytes;
  shape.end_bytes = shape.cu_seqlens_bytes + (tokens + 1) * sizeof(std::int32_t);
  return shape;
}

std::string Windows::path(std::uint32_t shard) const {
  std::size_t at = 0;
  while (at + 1 < sources_.size() && sources_[at + 1].first_shard <= shard) ++at;
  return sources_[at].stream->shards()->path(shard - sources_[at].first_shard);
}

Windows::Window Windows::window_of(std::uint64_t sample) const {
  // The usual single source needs no search per window.
  const std::size_t at = sources_.size() > 1 ? source_of(first_, sample) : 0;
  const std::uint64_t inside = sample - first_[at];
  return {sources_[at], options_.anywhere ? inside : inside * options_.block_size};
}

void Windows::locate(std::size_t /*field*/, std::uint64_t /*part*/,
                     std::span<const std::uint64_t> samples, std::span<std::byte* const> targets,
                     std::vector<Read>& out) const {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Window window = window_of(samples[i]);
    window.source.stream->locate(window.first_token, options_.block_size + 1,
                                 window.source.first_shard, targets[i], out);
  }
}

void Windows::deliver(const ReadSamples& read, std::byte* out) const {
  widen_rows(read, out, out + shape(read.samples.size()).y_bytes);
  if (options_.separate) deliver_documents(read, out);
}

void Windows::describe(std::uint64_t samples, std::span<const std::byte> batch,
                       std::vector<Column>* columns) const {
  const Shape shape = this->shape(samples);
  const std::uint64_t tokens = samples * options_.block_size;
  const std::uint64_t item = token_bytes(options_.to);
  const char kind = token_type_name(options_.to).front();  // "int64" or "uint16"
  columns->assign({{0, tokens * item, kind, item}, {shape.y_bytes, tokens * item, kind, item}});
  if (!options_.separate) return;
  std::uint64_t entries = 0;
  std::memcpy(&entries, batch.data() + shape.cu_count_bytes, sizeof(entries));
  constexpr std::uint64_t kPlace = sizeof(std::int32_t);
  columns->push_back({shape.positions_bytes, tokens * kPlace, 'i', kPlace});
  columns->push_back({shape.cu_seqlens_bytes, entries * kPlace, 'i', kPlace});
}

void Windows::widen_rows(const ReadSamples& read, std::byte* x, std::byte* y) const {
  const std::uint64_t row_bytes = options_.block_size * token_bytes(options_.to);
  for (std::size_t i = 0; i < read.samples.size(); ++i) {
    const Window window = window_of(read.samples[i]);
    const std::byte* const staged = read.bytes + i * sample_bytes_;
    const std::uint64_t at = i * row_bytes;
    if (!widen(window.source.stream->type(), staged, options_.block_size + 1, options_.to, x + at,
               y + at)) {
      throw_misfit(window, staged);
    }
  }
}

void Windows::throw_misfit(const Window& window, const std::byte* staged) const {
  const TokenStream& stream = *window.source.stream;
  const std::size_t at = first_misfit(stream.type(), staged, options_.block_size + 1, options_.to);
  const std::uint64_t token = window.first_token + at;
  throw std::invalid_argument(
      stream.path_of(token) + ": token " + token_text(stream.type(), staged, at) + " at position " +
      std::to_string(token) + " of the stream does not fit dtype " +
      std::string(token_type_name(options_.to)) + "; use a wider dtype, such as int64");
}

// Where documents start in x, counted from its first token. The window itself counts as a start, so
// the first entry is always 0.
void Windows::starts_in(const Window& window, const std::byte* staged,
                        std::vector<std::uint64_t>* starts) const {
  starts->assign(1, window.first_token);
  const std::uint64_t end = window.first_token + options_.block_size;
  const WindowsSource& source = window.source;
  if (source.documents) {
    source.documents->starts_between(window.first_token, end, starts);
  } else if (source.eot) {
    // A token that begins a document at the start of the window adds nothing: that is a start
    // anyway.
    const bool begins = source.stream->eot_begins();
    const std::uint64_t item = source.stream->item_bytes();
    for (std::uint64_t i = begins ? 1 : 0; i < options_.block_size; ++i) {
      std::uint64_t token = 0;  // little-endian, and an end mark is never negative
      std::memcpy(&token, staged + i * item, item);
      const std::uint64_t start = window.first_token + i + (begins ? 0 : 1);
      if (token == *source.eot && start < end) starts->push_back(start);
    }
  }
  for (std::uint64_t& start : *starts) start -= window.first_token;
}

void Windows::deliver_documents(const ReadSamples& read, std::byte* out) const {
  const Shape shape = this->shape(read.samples.size());
  auto* position = reinterpret_cast<std::int32_t*>(out + shape.positions_bytes);
  auto* const cu_seqlens = reinterpret_cast<std::int32_t*>(out + shape.cu_seqlens_bytes);
  std::uint64_t entries = 0;
  std::vector<std::uint64_t> starts;
  for (std::size_t i = 0; i < read.samples.size(); ++i) {
    starts_in(window_of(read.samples[i]), read.bytes + i * sample_bytes_, &starts);
    starts.push_back(options_.block_size);  // so that the last document has an end too
    for (std::size_t document = 0; document + 1 < starts.size(); ++document) {
      cu_seqlens[entries++] = static_cast<std::int32_t>(i * options_.block_size + starts[document]);
      const auto length = static_cast<std::int32_t>(starts[document + 1] - starts[document]);
      for (std::int32_t at = 0; at < length; ++at) *position++ = at;
    }
  }
  cu_seqlens[entries++] = static_cast<std::int32_t>(read.samples.size() * options_.block_size);
  std::memcpy(out + shape.cu_count_bytes, &entries, sizeof(entries));
}

}  // namespace lowtide
