#include "dataset/documents.h"

#include <algorithm>

namespace lowtide {
namespace {

constexpr std::size_t kPieceWords = 8192;  // of an index array, per read
// With more pointers per document than this, most of a contiguous read would be wasted.
constexpr std::uint64_t kSparseWords = 8;
constexpr std::uint64_t kLookAhead = 32;  // documents per read after the first of a window

std::uint64_t all_documents(const std::vector<TokenLayout>& layouts) {
  std::uint64_t all = 0;
  for (const TokenLayout& layout : layouts) all += layout.documents->documents;
  return all;
}

std::uint64_t stride_of(std::uint64_t documents, std::uint64_t most_bytes) {
  const std::uint64_t entries = std::max<std::uint64_t>(1, most_bytes / sizeof(std::uint64_t));
  return std::max<std::uint64_t>(1, (documents + entries - 1) / entries);
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
    bytes += sizeof(Part) + layout.documents->path.size() +
             layout.runs.size() * (sizeof(TokenRun) + sizeof(std::uint64_t));
  }
  return bytes;
}

Documents::Documents(std::shared_ptr<const TokenStream> stream,
                     const std::vector<TokenLayout>& layouts, std::shared_ptr<Files> files,
                     std::uint64_t most_bytes)
    : stream_(std::move(stream)), files_(std::move(files)) {
  std::uint64_t tokens = 0;
  for (const TokenLayout& layout : layouts) {
    Part part{*layout.documents, layout.runs, {}, documents_, 0};
    for (const TokenRun& run : part.runs) {
      part.run_tokens.push_back(tokens);
      tokens += run.tokens;
    }
    part.end_token = tokens;
    documents_ += part.index.documents;
    parts_.push_back(std::move(part));
  }
  stride_ = stride_of(documents_, most_bytes);
  std::vector<std::uint64_t> table;
  table.reserve((documents_ + stride_ - 1) / stride_);
  if (stride_ == 1) {  // long reads, where offset() would take two short ones per document
    table.resize(documents_);
    for (std::size_t at = 0; at < parts_.size(); ++at) {
      const Part& part = parts_[at];
      read_part(at, 0, std::span(table).subspan(part.first_document, part.index.documents));
    }
  } else {
    for (std::uint64_t document = 0; document < documents_; document += stride_) {
      table.push_back(offset(document));
    }
  }
  table_ = std::move(table);
}

std::size_t Documents::part_of(std::uint64_t document) const {
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), document,
      [](std::uint64_t place, const Part& part) { return place < part.first_document; });
  return static_cast<std::size_t>(after - parts_.begin() - 1);
}

// The parent's files are leaked on purpose: a thread of the parent may have held their lock at the
// fork, and nobody would release it here.
Files& Documents::files() const {
  fork_.look([this] {
    auto again = std::make_shared<Files>(files_->shards(), files_->max_open());
    files_.swap(again);
    (void)new std::shared_ptr<Files>(std::move(again));
  });
  return *files_;
}

void Documents::read_words(std::size_t part, std::uint64_t offset_bytes,
                           std::span<std::int64_t> out) const {
  files()
      .open(static_cast<std::uint32_t>(part))
      ->read_exact(offset_bytes, std::as_writable_bytes(out));
}

// The index was checked when it was opened, but the file may have changed since. A pointer that is
// now outside its run is clamped instead of trusted.
std::uint64_t Documents::token_at(const Part& part, std::uint64_t sequence,
                                  std::int64_t pointer) const {
  const auto after = std::upper_bound(
      part.runs.begin(), part.runs.end(), sequence,
      [](std::uint64_t place, const TokenRun& run) { return place < run.first_sequence; });
  if (after == part.runs.begin()) {
    return part.run_tokens.empty() ? part.end_token : part.run_tokens.front();
  }
  const auto which = static_cast<std::size_t>(after - part.runs.begin() - 1);
  const TokenRun& run = part.runs[which];
  const auto byte = std::max(static_cast<std::uint64_t>(pointer), run.offset_bytes);
  return part.run_tokens[which] +
         std::min(run.tokens, (byte - run.offset_bytes) / stream_->item_bytes());
}

void Documents::read_part(std::size_t at, std::uint64_t first, std::span<std::uint64_t> out) const {
  const Part& part = parts_[at];
  std::vector<std::int64_t> sequences, pointers;
  while (!out.empty()) {
    sequences.resize(std::min(out.size(), kPieceWords));
    read_words(at, part.index.documents_offset_bytes + first * sizeof(std::int64_t), sequences);
    const auto end = static_cast<std::int64_t>(part.index.sequences);
    // Clamped for the same reason as in token_at().
    for (std::int64_t& sequence : sequences) sequence = std::clamp<std::int64_t>(sequence, 0, end);
    const std::int64_t low = sequences.front();
    const std::int64_t span = std::max<std::int64_t>(0, sequences.back() - low) + 1;
    const bool dense = static_cast<std::uint64_t>(span) <= kSparseWords * sequences.size();
    if (dense) {
      pointers.resize(static_cast<std::size_t>(std::min(span, end - low)));
      read_words(
          at,
          part.index.pointers_offset_bytes + static_cast<std::uint64_t>(low) * sizeof(std::int64_t),
          pointers);
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const std::int64_t sequence = sequences[i];
      if (sequence == end) {  // the boundary after the last sequence has no pointer
        out[i] = part.end_token;
        continue;
      }
      std::int64_t pointer = 0;
      const auto place = static_cast<std::size_t>(sequence - low);
      // Boundaries never decreased when they were checked, so only a changed index fails this test.
      if (dense && sequence >= low && place < pointers.size()) {
        pointer = pointers[place];
      } else {
        read_words(at,
                   part.index.pointers_offset_bytes +
                       static_cast<std::uint64_t>(sequence) * sizeof(std::int64_t),
                   std::span(&pointer, 1));
      }
      out[i] = token_at(part, static_cast<std::uint64_t>(sequence), pointer);
    }
    first += sequences.size();
    out = out.subspan(sequences.size());
  }
}

void Documents::offsets(std::uint64_t first, std::span<std::uint64_t> out) const {
  while (!out.empty()) {
    if (first == documents_) {
      out.front() = stream_->size();
      return;
    }
    std::size_t now = 0;
    if (stride_ == 1 && !table_.empty()) {
      now = std::min<std::size_t>(out.size(), documents_ - first);
      std::copy_n(table_.begin() + static_cast<std::ptrdiff_t>(first), now, out.begin());
    } else {
      const std::size_t at = part_of(first);
      const std::uint64_t inside = first - parts_[at].first_document;
      now = std::min<std::size_t>(out.size(), parts_[at].index.documents - inside);
      read_part(at, inside, out.first(now));
    }
    first += now;
    out = out.subspan(now);
  }
}

std::uint64_t Documents::offset(std::uint64_t document) const {
  std::uint64_t token = 0;
  offsets(document, std::span(&token, 1));
  return token;
}

void Documents::starts_between(std::uint64_t first, std::uint64_t last,
                               std::vector<std::uint64_t>* out) const {
  const auto known = std::upper_bound(table_.begin(), table_.end(), first);
  if (known == table_.begin()) return;  // no documents: the first one starts at 0
  // Searches between the last document in the table that starts at or before `first` and the next
  // one in the table, with about log2(stride) lookups in the file.
  std::uint64_t low = static_cast<std::uint64_t>(known - table_.begin() - 1) * stride_;
  std::uint64_t high = std::min(documents_, low + stride_);
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (offset(middle) <= first ? low : high) = middle;
  }
  std::vector<std::uint64_t> starts;
  for (std::uint64_t next = low + 1; next < documents_; next += starts.size()) {
    starts.resize(std::min(kLookAhead, documents_ - next));
    offsets(next, starts);
    for (const std::uint64_t start : starts) {
      if (start >= last) return;
      // An empty document starts where the next one does; a start is reported only once.
      if (start > first && (out->empty() || out->back() != start)) out->push_back(start);
    }
  }
}

}  // namespace lowtide
