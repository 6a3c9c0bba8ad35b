// Merges token files that have an index, without changing what a document is: it may consist of
// several sequences. Nothing in memory grows with them: the columns of the index are made one after
// the other, each from the lengths in the old indexes.
#include <array>
#include <cerrno>
#include <functional>

#include "face/tokens_impl.h"
#include "job/copy.h"
#include "os/file.h"
#include "os/memory.h"
#include "token_format/token_output.h"
#include "writer/published_pair.h"
#include "writer/sequential_output.h"

namespace lowtide {
namespace {

constexpr std::size_t kSliceBytes = 64 * 1024;

struct MergedIndexes {
  std::vector<DocumentIndex> indexes;
  std::vector<std::pair<std::string, PathStamp>> stamps;  // of all files
  std::uint64_t tokens = 0, sequences = 0, documents = 0;
};

// Calls `use` with each of `count` little-endian integers in a file.
template <typename Integer>
void for_entries(const File& file, std::uint64_t offset_bytes, std::uint64_t count,
                 const std::function<void(Integer)>& use) {
  std::vector<std::byte> slice(kSliceBytes);
  constexpr std::uint64_t kMost = kSliceBytes / sizeof(Integer);
  for (std::uint64_t first = 0; first < count; first += kMost) {
    const std::uint64_t now = std::min(kMost, count - first);
    file.read_exact(offset_bytes + first * sizeof(Integer),
                    std::span(slice).first(now * sizeof(Integer)));
    for (std::uint64_t i = 0; i < now; ++i) use(load_little<Integer>(&slice[i * sizeof(Integer)]));
  }
}

void for_lengths(const DocumentIndex& index, const std::function<void(std::uint64_t)>& use) {
  const File file(index.path);
  if (index.by == DocumentsBy::token_ends) {
    std::uint64_t before = 0;
    for_entries<std::uint64_t>(file, index.documents_offset_bytes, index.documents,
                               [&](std::uint64_t end) { use(end - std::exchange(before, end)); });
    return;
  }
  for_entries<std::uint32_t>(file, index.lengths_offset_bytes, index.sequences,
                             [&](std::uint32_t length) { use(length); });
}

// One entry per sequence.
void write_sequences(const MergedIndexes& all, const IndexColumn& column, std::uint64_t item_bytes,
                     SequentialOutput* out, JobWatch& watch) {
  DocumentPlace place{.item_bytes = item_bytes};
  std::array<std::byte, 64> entry;
  for (const DocumentIndex& index : all.indexes) {
    for_lengths(index, [&](std::uint64_t length) {
      place.tokens = length;
      column.store(place, entry.data());
      out->append(std::span(entry).first(column.entry_bytes));
      place.first_token += length;
      if (++place.number % 4096 == 0) watch.advance(0);
    });
  }
}

// One entry per document: the number of its first sequence among all.
void write_boundaries(const MergedIndexes& all, const IndexColumn& column, SequentialOutput* out,
                      JobWatch& watch) {
  std::array<std::byte, 64> entry;
  std::uint64_t before = 0;
  const auto write = [&](std::uint64_t number) {
    column.store({.number = number}, entry.data());
    out->append(std::span(entry).first(column.entry_bytes));
  };
  for (const DocumentIndex& index : all.indexes) {
    const File file(index.path);
    for_entries<std::uint64_t>(file, index.documents_offset_bytes, index.documents,
                               [&](std::uint64_t first) { write(before + first); });
    before += index.sequences;
    watch.advance(0);
  }
  if (column.has_end) write(before);
}

void check_plain(const DocumentIndex& index) {
  if (index.by == DocumentsBy::token_ends) return;
  const std::uint64_t end_bytes = index.documents_offset_bytes + 8 * (index.documents + 1);
  if (File(index.path).shard().size_bytes == end_bytes) return;
  throw FormatError(index.path + ": expected no modes after the document boundaries, found some; " +
                    "multimodal data cannot be merged");
}

// Copies the tokens, and notes what the index needs.
MergedIndexes copy_data(const Copy& copy, const CopyMemory& sizes, SequentialOutput* out,
                        JobWatch& watch) {
  MergedIndexes all;
  const std::uint64_t item_bytes = copy.dtype.itemsize_bytes;
  for (std::size_t i = 0; i < copy.sources.size(); ++i) {
    const OpenSource source = open_same_source(copy.sources[i], copy.stamps[i], sizes.source_bytes);
    const Tokens& tokens = *source.tokens;
    for (std::uint64_t at = 0; at < tokens.size();) {
      const std::span<std::byte> room = out->room();
      const std::uint64_t now =
          std::min<std::uint64_t>(tokens.size() - at, room.size() / item_bytes);
      tokens.read(at, now, room.first(now * item_bytes));
      out->filled(now * item_bytes);
      watch.advance(now * item_bytes);
      at += now;
    }
    for (const TokenLayout& layout : Tokens::Impl::of(tokens)->layouts) {
      check_plain(*layout.documents);
      all.indexes.push_back(*layout.documents);
      all.sequences += layout.documents->sequences;
      all.documents += layout.documents->documents;
    }
    for (const std::string& path : source.files()) all.stamps.emplace_back(path, *stamp_of(path));
    check_same(source, copy.stamps[i]);
    all.tokens += tokens.size();
  }
  return all;
}

}  // namespace

void copy_sequences(const Copy& copy, const CopyMemory& sizes, JobWatch& watch) {
  const TokenTarget target = token_target(copy.destination.path, copy.format, copy.dtype);
  const IndexOutput& format = *target.output->index;
  recover_pair(target.data_path, target.index_path);
  PublishedFile data(target.data_path, PublishedFile::Start::anew, sizes.dirty_chunk_bytes);
  PublishedFile index(target.index_path, PublishedFile::Start::anew, sizes.dirty_chunk_bytes);
  data.sign(copy.job);
  index.sign(copy.job);
  const Memory data_buffer(sizes.block_bytes, /*prefault=*/false, "write buffers");
  const Memory index_buffer(sizes.output_bytes, /*prefault=*/false, "write buffers");
  SequentialOutput data_output(data, data_buffer.bytes());
  SequentialOutput index_output(index, index_buffer.bytes());

  const MergedIndexes all = copy_data(copy, sizes, &data_output, watch);
  data_output.flush();
  index_output.append_zeros(format.header_bytes);
  for (const IndexColumn& column : format.columns) {
    if (column.of_documents) {
      write_boundaries(all, column, &index_output, watch);
    } else {
      write_sequences(all, column, copy.dtype.itemsize_bytes, &index_output, watch);
    }
  }
  index_output.flush();
  if (format.header_bytes > 0) {
    TokenTotals totals = target.totals(all.tokens, all.documents);
    totals.sequences = all.sequences;
    const std::span<std::byte> header = index_buffer.bytes().first(format.header_bytes);
    format.store_header(totals, header);
    index.write(0, header);
  }
  for (const auto& [path, stamp] : all.stamps) {
    if (stamp_of(path) == stamp) continue;
    throw IoError(ESTALE, "read", path, std::nullopt,
                  "it changed while it was being merged; plan again");
  }
  data.sync();
  index.sync();
  copy.destination.check_free();
  publish_pair(data, index);
}

}  // namespace lowtide
