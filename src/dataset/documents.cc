#include "dataset/documents.h"

#include <algorithm>
#include <utility>

namespace lowtide {
namespace {

constexpr std::uint64_t kWordBytes = sizeof(std::int64_t);
// Words of an index array that are looked up together. With the next constant, this bounds the
// memory that a look-up takes: one read brings at most 8 * 8192 words, 512 KiB.
constexpr std::uint64_t kMostWords = 8192;
// If at least one in this many words is wanted, one long read is cheaper than a read per word.
constexpr std::uint64_t kSparseWords = 8;
// A search ends here, because reading a page costs no more than reading a word.
constexpr std::uint64_t kPageWords = 4096 / kWordBytes;

std::uint64_t all_documents(const std::vector<TokenLayout>& layouts) {
  std::uint64_t all = 0;
  for (const TokenLayout& layout : layouts) all += layout.documents->documents;
  return all;
}

std::uint64_t stride_of(std::uint64_t documents, std::uint64_t most_bytes) {
  const std::uint64_t entries = std::max<std::uint64_t>(1, most_bytes / kWordBytes);
  return std::max<std::uint64_t>(1, (documents + entries - 1) / entries);
}

template <typename Word>
Read read_of(std::size_t file, std::uint64_t offset_bytes, std::span<Word> into) {
  return {.from = {.offset_bytes = offset_bytes,
                   .size_bytes = static_cast<std::uint32_t>(into.size_bytes()),
                   .shard = static_cast<std::uint32_t>(file)},
          .into = std::as_writable_bytes(into).data()};
}

}  // namespace

std::uint64_t Documents::table_bytes(const std::vector<TokenLayout>& layouts,
                                     std::uint64_t most_bytes) {
  const std::uint64_t documents = all_documents(layouts);
  const std::uint64_t stride = stride_of(documents, most_bytes);
  return (documents + stride - 1) / stride * sizeof(std::uint64_t);
}

std::uint64_t Documents::held_bytes(const std::vector<TokenLayout>& layouts,
                                    std::uint64_t most_bytes) {
  std::uint64_t bytes = table_bytes(layouts, most_bytes);
  for (const TokenLayout& layout : layouts) {
    bytes += sizeof(IndexFile) + layout.documents->path.size() +
             layout.extents.size() * (sizeof(TokenExtent) + sizeof(std::uint64_t));
  }
  return bytes;
}

Documents::Documents(std::shared_ptr<const TokenStream> stream,
                     const std::vector<TokenLayout>& layouts, ReadIndexes read,
                     std::uint64_t most_bytes)
    : stream_(std::move(stream)), read_(std::move(read)) {
  std::uint64_t tokens = 0;
  for (const TokenLayout& layout : layouts) {
    IndexFile file{*layout.documents, layout.extents, layout.records, {}, documents_, tokens, 0};
    for (const TokenExtent& extent : file.extents) {
      file.extent_tokens.push_back(tokens);
      tokens += extent.tokens;
    }
    if (file.records) tokens += file.records->tokens();
    file.end_token = tokens;
    documents_ += file.index.documents;
    files_.push_back(std::move(file));
  }
  stride_ = stride_of(documents_, most_bytes);
  std::vector<std::uint64_t> table((documents_ + stride_ - 1) / stride_);
  look_up(0, stride_, table);
  table_ = std::move(table);
  if (holds_all()) read_ = nullptr;  // closes what it holds open: nothing is left to read
}

std::size_t Documents::file_of(std::uint64_t document) const {
  const auto after = std::upper_bound(
      files_.begin(), files_.end(), document,
      [](std::uint64_t wanted, const IndexFile& file) { return wanted < file.first_document; });
  return static_cast<std::size_t>(after - files_.begin() - 1);
}

// The index was checked when it was opened, but the file may have changed since. A pointer that is
// now outside its extent is clamped instead of trusted.
std::uint64_t Documents::token_at(const IndexFile& file, std::uint64_t sequence,
                                  std::int64_t pointer) const {
  const auto after = std::upper_bound(file.extents.begin(), file.extents.end(), sequence,
                                      [](std::uint64_t wanted, const TokenExtent& extent) {
                                        return wanted < extent.first_sequence;
                                      });
  if (after == file.extents.begin()) {
    return file.extent_tokens.empty() ? file.end_token : file.extent_tokens.front();
  }
  const auto which = static_cast<std::size_t>(after - file.extents.begin() - 1);
  const TokenExtent& extent = file.extents[which];
  const auto byte = std::max(static_cast<std::uint64_t>(pointer), extent.offset_bytes);
  return file.extent_tokens[which] +
         std::min(extent.tokens, (byte - extent.offset_bytes) / stream_->item_bytes());
}

// Reads these entries of the array at byte `array_bytes`, at most kMostWords of them. They need not
// be sorted: a changed index may have any boundaries.
template <typename Word>
void Documents::read_words(std::size_t file, std::uint64_t array_bytes,
                           const std::vector<std::uint64_t>& entries, std::span<Word> out) const {
  if (entries.empty()) return;
  const auto [low, high] = std::ranges::minmax(entries);
  if (high - low < kSparseWords * entries.size()) {
    std::vector<Word> words(high - low + 1);
    const Read all = read_of<Word>(file, array_bytes + low * sizeof(Word), words);
    read_({&all, 1});
    for (std::size_t i = 0; i < entries.size(); ++i) out[i] = words[entries[i] - low];
    return;
  }
  std::vector<Read> reads;
  reads.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    reads.push_back(read_of(file, array_bytes + entries[i] * sizeof(Word), out.subspan(i, 1)));
  }
  read_(reads);
}

// Where these documents of one file start.
void Documents::read_starts(std::size_t at, const std::vector<std::uint64_t>& documents,
                            std::span<std::uint64_t> out) const {
  const IndexFile& file = files_[at];
  switch (file.index.by) {
    case DocumentsBy::sequences:
      return read_of_sequences(at, documents, out);
    case DocumentsBy::token_ends:
      return read_after_ends(at, documents, out);
    case DocumentsBy::byte_offsets:
      return read_byte_offsets(at, documents, out);
    case DocumentsBy::records:
      std::ranges::transform(documents, out.begin(), [&](std::uint64_t document) {
        return file.first_token + file.records->first_token(document);
      });
  }
}

// A document names its first sequence, and the sequence's pointer says where that is in the data,
// so it takes one read in each of the two arrays.
void Documents::read_of_sequences(std::size_t at, const std::vector<std::uint64_t>& documents,
                                  std::span<std::uint64_t> out) const {
  const IndexFile& file = files_[at];
  std::vector<std::int64_t> words(documents.size());
  read_words<std::int64_t>(at, file.index.documents_offset_bytes, documents, words);
  std::vector<std::uint64_t> sequences;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Clamped for the same reason as in token_at().
    out[i] = std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(0, words[i])),
                      file.index.sequences);
    // The boundary after the last sequence has no pointer.
    if (out[i] < file.index.sequences) sequences.push_back(out[i]);
  }
  read_words<std::int64_t>(at, file.index.pointers_offset_bytes, sequences, words);
  auto pointer = words.begin();
  for (std::uint64_t& start : out) {
    start = start == file.index.sequences ? file.end_token : token_at(file, start, *pointer++);
  }
}

// The same if the index holds ends: a document starts where the one before ends.
void Documents::read_after_ends(std::size_t at, const std::vector<std::uint64_t>& documents,
                                std::span<std::uint64_t> out) const {
  const IndexFile& file = files_[at];
  std::vector<std::uint64_t> before;
  for (const std::uint64_t document : documents) {
    if (document > 0) before.push_back(document - 1);
  }
  std::vector<std::int64_t> ends(before.size());
  read_words<std::int64_t>(at, file.index.documents_offset_bytes, before, ends);
  const std::uint64_t first = file.first_token;
  auto end = ends.begin();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    // Clamped for the same reason as in token_at().
    const std::uint64_t inside = documents[i] == 0 ? 0 : static_cast<std::uint64_t>(*end++);
    out[i] = first + std::min(inside, file.end_token - first);
  }
}

// The same if the index holds the bytes of the data file at which documents start.
void Documents::read_byte_offsets(std::size_t at, const std::vector<std::uint64_t>& documents,
                                  std::span<std::uint64_t> out) const {
  const IndexFile& file = files_[at];
  if (file.extents.empty()) {
    std::ranges::fill(out, file.end_token);
    return;
  }
  std::vector<std::uint32_t> offsets(documents.size());
  read_words<std::uint32_t>(at, file.index.documents_offset_bytes, documents, offsets);
  std::ranges::transform(offsets, out.begin(),
                         [&](std::uint32_t offset) { return token_at(file, 0, offset); });
}

// Where documents first, first + stride, ... start, all of which exist.
void Documents::look_up(std::uint64_t first, std::uint64_t stride,
                        std::span<std::uint64_t> out) const {
  std::vector<std::uint64_t> documents;
  while (!out.empty()) {
    const std::size_t at = file_of(first);
    const std::uint64_t inside = first - files_[at].first_document;
    const std::uint64_t here = (files_[at].index.documents - inside + stride - 1) / stride;
    documents.resize(std::min<std::uint64_t>({out.size(), here, kMostWords}));
    for (std::size_t i = 0; i < documents.size(); ++i) documents[i] = inside + i * stride;
    read_starts(at, documents, out.first(documents.size()));
    first += documents.size() * stride;
    out = out.subspan(documents.size());
  }
}

void Documents::offsets(std::uint64_t first, std::span<std::uint64_t> out) const {
  if (!out.empty() && first + out.size() > documents_) {
    out.back() = stream_->size();
    out = out.first(out.size() - 1);
  }
  if (holds_all()) {
    std::copy_n(table_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  } else {
    look_up(first, 1, out);
  }
}

void Documents::starts_between(std::uint64_t first, std::uint64_t last,
                               std::vector<std::uint64_t>* out) const {
  const auto known = std::upper_bound(table_.begin(), table_.end(), first);
  if (known == table_.begin()) return;  // no documents: the first one starts at 0
  // Searches between the last document in the table that starts at or before `first` and the next
  // one in the table.
  std::uint64_t low = static_cast<std::uint64_t>(known - table_.begin() - 1) * stride_;
  std::uint64_t high = std::min(documents_, low + stride_);
  while (high - low > kPageWords) {
    const std::uint64_t middle = low + (high - low) / 2;
    std::uint64_t start = 0;
    offsets(middle, {&start, 1});
    (start <= first ? low : high) = middle;
  }
  // From the first entry of the table at or after `last` on, no document starts before it, so
  // reading ends there.
  const auto beyond = std::lower_bound(known, table_.end(), last);
  const std::uint64_t end =
      std::min(documents_, static_cast<std::uint64_t>(beyond - table_.begin()) * stride_);
  std::vector<std::uint64_t> starts;
  for (std::uint64_t next = low + 1; next < end; next += starts.size()) {
    starts.resize(std::min(kPageWords, end - next));
    offsets(next, starts);
    for (const std::uint64_t start : starts) {
      if (start >= last) return;
      // An empty document starts where the next one does; a start is reported only once.
      if (start > first && (out->empty() || out->back() != start)) out->push_back(start);
    }
  }
}

}  // namespace lowtide
