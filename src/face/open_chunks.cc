// Arrays in chunks that somebody else has located.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "face/array_impl.h"
#include "format/descr.h"
#include "os/file.h"
#include "os/paths.h"

namespace lowtide {
namespace {

// Whether the only chunk is the array itself, so that its rows are those of a plain file.
bool is_contiguous(const Layout& layout, const ChunkTable& table) {
  const auto& shape = layout.shape;
  const auto& chunk = table.chunk_shape;
  if (table.offsets_bytes.size() != 1 || table.offsets_bytes[0] == ChunkTable::kAbsent)
    return false;
  return chunk.size() == shape.size() &&
         (shape.empty() ||
          (chunk[0] >= shape[0] && std::equal(shape.begin() + 1, shape.end(), chunk.begin() + 1)));
}

std::shared_ptr<const Rows> rows_of(LocatedArray found) {
  const bool plain = is_contiguous(found.layout, found.table);
  if (!plain && found.layout.data_bytes > 0) {
    return std::make_shared<const Rows>(found.layout, std::move(found.table),
                                        std::move(found.shards));
  }
  const std::size_t file = plain && !found.table.shards.empty() ? found.table.shards[0] : 0;
  if (file >= found.shards->size())
    throw std::invalid_argument("chunks: a file number is too large");
  const Shard shard = (*found.shards)[file];
  found.layout.data_offset_bytes = plain ? found.table.offsets_bytes[0] : 0;
  check_fits(found.layout, shard.size_bytes, shard.path);
  return std::make_shared<const Rows>(std::vector<RowsFile>{{std::move(found.layout), shard}});
}

}  // namespace

ChunkFile ChunkFile::of(const std::string& path) {
  const Shard shard = File(path).shard();
  return {whole_path(shard.path), shard.size_bytes, shard.version};
}

std::shared_ptr<Array::Impl> Array::Impl::open(ArrayChunks chunks, const ReadOptions& options) {
  if (chunks.files.empty()) throw std::invalid_argument("chunks: the list of files is empty");
  LocatedArray found;
  for (ChunkFile& file : chunks.files) {
    found.shards->add({std::move(file.path), file.size_bytes, file.version});
  }
  found.layout.format = std::move(chunks.format);
  found.layout.dtype = parse_descr(chunks.dtype);
  found.layout.shape = chunks.shape;
  found.layout = make_layout(std::move(found.layout),
                             chunks.path.empty() ? found.shards->path(0) : chunks.path);
  found.table = {.chunk_shape = std::move(chunks.chunk_shape),
                 .offsets_bytes = std::move(chunks.offsets_bytes),
                 .shards = std::move(chunks.file_numbers),
                 .fill = std::move(chunks.fill)};
  // The axes of a sub-array dtype are inside of every chunk.
  if (found.table.chunk_shape.size() == chunks.shape.size()) {
    found.table.chunk_shape.insert(
        found.table.chunk_shape.end(),
        found.layout.shape.begin() + static_cast<std::ptrdiff_t>(chunks.shape.size()),
        found.layout.shape.end());
  }
  found.path = std::move(chunks.path);
  return open(std::move(found), options);
}

std::shared_ptr<Array::Impl> Array::Impl::open(LocatedArray found, const ReadOptions& options) {
  std::string format = found.layout.format, path = found.path;
  const auto rows = rows_of(std::move(found));
  auto impl = std::make_shared<Impl>(rows, std::move(format), options, std::move(path));
  if (rows->shards()->size() == 1) {
    // Throws now, not at the first read, if the file is another one.
    impl->holder->store()->files().adopt(0, std::make_shared<File>(rows->shards()->path(0)));
  }
  return impl;
}

}  // namespace lowtide
