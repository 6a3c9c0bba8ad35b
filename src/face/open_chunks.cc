// Arrays in chunks, or in pieces, that somebody else has located.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
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

std::vector<Shard> shards_of(std::vector<ArrayFile>&& files) {
  if (files.empty()) throw std::invalid_argument("the list of files is empty");
  std::vector<Shard> shards;
  shards.reserve(files.size());
  for (ArrayFile& file : files) {
    shards.push_back({std::move(file.path), file.size_bytes, file.version});
  }
  return shards;
}

// Throws FormatError unless the rows of the layout are inside of the file.
std::shared_ptr<Rows> rows_of(const Layout& whole, const ArrayPieces& pieces,
                              const std::vector<Shard>& shards) {
  const auto rows = std::make_shared<Rows>();
  std::optional<std::uint32_t> last;
  for (std::size_t i = 0; i < pieces.rows.size(); ++i) {
    Layout layout = whole;
    const std::uint32_t file = pieces.file_numbers[i];
    if (file >= shards.size() || file < last.value_or(0)) {
      throw std::invalid_argument("pieces: file number " + std::to_string(file) +
                                  " is too large, or less than the one before");
    }
    layout.shape[0] = pieces.rows[i];
    layout.data_offset_bytes = pieces.offsets_bytes[i];
    layout = make_layout(std::move(layout), shards[file].path);
    check_fits(layout, shards[file].size_bytes, shards[file].path);
    if (file == last) {
      rows->add_piece(layout.data_offset_bytes, pieces.rows[i]);
    } else {
      rows->add({std::move(layout), shards[file]});
    }
    last = file;
  }
  if (!last) rows->add({make_layout(whole, shards[0].path), shards[0]});
  return rows;
}

// Throws now, not at the first read, if the only file is another one.
void adopt_file(Array::Impl& impl) {
  if (impl.rows->shards()->size() != 1) return;
  const std::string path = impl.rows->shards()->path(0);
  impl.holder->store()->files().adopt(0, std::make_shared<File>(path));
}

}  // namespace

ArrayFile ArrayFile::of(const std::string& path) {
  const Shard shard = File(path).shard();
  return {whole_path(shard.path), shard.size_bytes, shard.version};
}

std::shared_ptr<Array::Impl> Array::Impl::open(ArrayChunks chunks, const ReadOptions& options) {
  const std::vector<Shard> shards = shards_of(std::move(chunks.files));
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
  adopt_file(*impl);
  return impl;
}

std::shared_ptr<Array::Impl> Array::Impl::open(ArrayPieces pieces, const ReadOptions& options) {
  if (pieces.rows.size() != pieces.offsets_bytes.size() ||
      pieces.rows.size() != pieces.file_numbers.size()) {
    throw std::invalid_argument("pieces: the lists have different lengths");
  }
  const std::vector<Shard> shards = shards_of(std::move(pieces.files));
  Layout layout;
  layout.format = pieces.format;
  layout.dtype = parse_descr(pieces.dtype);
  layout.shape = {0};
  layout.shape.insert(layout.shape.end(), pieces.row_shape.begin(), pieces.row_shape.end());
  auto impl = std::make_shared<Impl>(rows_of(layout, pieces, shards), pieces.format, options);
  adopt_file(*impl);
  return impl;
}

}  // namespace lowtide
