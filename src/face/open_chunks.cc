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

std::shared_ptr<const Rows> rows_of(Layout layout, ChunkTable table,
                                    const std::vector<Shard>& shards) {
  const bool plain = is_contiguous(layout, table);
  if (plain || layout.data_bytes == 0) {
    const std::size_t file = plain && !table.shards.empty() ? table.shards[0] : 0;
    if (file >= shards.size()) throw std::invalid_argument("chunks: a file number is too large");
    layout.data_offset_bytes = plain ? table.offsets_bytes[0] : 0;
    check_fits(layout, shards[file].size_bytes, shards[file].path);
    return std::make_shared<const Rows>(std::vector<RowsFile>{{std::move(layout), shards[file]}});
  }
  return std::make_shared<const Rows>(layout, std::move(table), std::make_shared<Shards>(shards));
}

}  // namespace

ArrayFile ArrayFile::of(const std::string& path) {
  const Shard shard = File(path).shard();
  return {whole_path(shard.path), shard.size_bytes, shard.version};
}

std::shared_ptr<Array::Impl> Array::Impl::open(ArrayChunks chunks, const ReadOptions& options) {
  if (chunks.files.empty()) throw std::invalid_argument("chunks: the list of files is empty");
  std::vector<Shard> shards;
  shards.reserve(chunks.files.size());
  for (ArrayFile& file : chunks.files) {
    shards.push_back({std::move(file.path), file.size_bytes, file.version});
  }
  Layout layout;
  layout.format = chunks.format;
  layout.dtype = parse_descr(chunks.dtype);
  layout.shape = chunks.shape;
  layout = make_layout(std::move(layout), chunks.path.empty() ? shards[0].path : chunks.path);
  ChunkTable table{.chunk_shape = std::move(chunks.chunk_shape),
                   .offsets_bytes = std::move(chunks.offsets_bytes),
                   .shards = std::move(chunks.file_numbers),
                   .fill = std::move(chunks.fill)};
  // The axes of a sub-array dtype are inside of every chunk.
  if (table.chunk_shape.size() == chunks.shape.size()) {
    table.chunk_shape.insert(
        table.chunk_shape.end(),
        layout.shape.begin() + static_cast<std::ptrdiff_t>(chunks.shape.size()),
        layout.shape.end());
  }
  const auto rows = rows_of(std::move(layout), std::move(table), shards);
  auto impl =
      std::make_shared<Impl>(rows, std::move(chunks.format), options, std::move(chunks.path));
  if (rows->shards()->size() == 1) {
    // Throws now, not at the first read, if the file is another one.
    impl->holder->store()->files().adopt(0, std::make_shared<File>(rows->shards()->path(0)));
  }
  return impl;
}

}  // namespace lowtide
