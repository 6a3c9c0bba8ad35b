// Arrays in chunks, or in stretches, that somebody else has located.
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

std::shared_ptr<const Rows> rows_of(LocatedArray found) {
  const bool plain = is_contiguous(found.layout, found.table);
  if (!plain && found.layout.data_bytes > 0) {
    return std::make_shared<const Rows>(found.layout, std::move(found.table),
                                        std::move(found.shards));
  }
  const std::size_t file = plain && !found.table.shards.empty() ? found.table.shards[0] : 0;
  if (file >= found.shards->size()) {
    throw std::invalid_argument("chunks: file number " + std::to_string(file) +
                                " is too large: the number of files is " +
                                std::to_string(found.shards->size()));
  }
  const Shard shard = (*found.shards)[file];
  found.layout.data_offset_bytes = plain ? found.table.offsets_bytes[0] : 0;
  check_fits(found.layout, shard.size_bytes, shard.path);
  return std::make_shared<const Rows>(std::vector<RowsFile>{{std::move(found.layout), shard}});
}

std::shared_ptr<Shards> shards_of(std::vector<LocatedFile>&& files) {
  if (files.empty()) throw std::invalid_argument("the list of files is empty; give at least one");
  const auto shards = std::make_shared<Shards>();
  for (LocatedFile& file : files) {
    shards->add({std::move(file.path), file.size_bytes, file.version, std::move(file.remote)});
  }
  return shards;
}

// Throws FormatError unless the rows of the layout are inside of the file.
std::shared_ptr<Rows> rows_of(const Layout& whole, const ArrayStretches& stretches,
                              const Shards& shards) {
  const auto rows = std::make_shared<Rows>();
  std::optional<std::uint32_t> last;
  for (std::size_t i = 0; i < stretches.rows.size(); ++i) {
    Layout layout = whole;
    const std::uint32_t file = stretches.file_numbers[i];
    if (file >= shards.size() || file < last.value_or(0)) {
      throw std::invalid_argument("stretches: file number " + std::to_string(file) +
                                  " of stretch " + std::to_string(i) +
                                  " is too large, or less than the one before it");
    }
    layout.shape[0] = stretches.rows[i];
    layout.data_offset_bytes = stretches.offsets_bytes[i];
    layout = make_layout(std::move(layout), shards.path(file));
    check_fits(layout, shards.size_bytes(file), shards.path(file));
    if (file == last) {
      rows->add_stretch(layout.data_offset_bytes, stretches.rows[i]);
    } else {
      rows->add({std::move(layout), shards[file]});
    }
    last = file;
  }
  if (!last) rows->add({make_layout(whole, shards.path(0)), shards[0]});
  return rows;
}

// Throws now, not at the first read, if the only file is another one.
void adopt_file(Array::Impl& impl) {
  if (impl.rows->shards()->size() != 1 || impl.rows->shards()->is_remote(0)) return;
  const std::string path = impl.rows->shards()->path(0);
  impl.holder->store()->files().adopt(0, std::make_shared<File>(path));
}

}  // namespace

LocatedFile LocatedFile::of(const std::string& path) {
  const Shard shard = File(path).shard();
  return {whole_path(shard.path), shard.size_bytes, shard.version, nullptr};
}

std::shared_ptr<Array::Impl> Array::Impl::open(ArrayChunks chunks, const ReadOptions& options) {
  LocatedArray found;
  found.shards = shards_of(std::move(chunks.files));
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
  adopt_file(*impl);
  return impl;
}

std::shared_ptr<Array::Impl> Array::Impl::open(ArrayStretches stretches,
                                               const ReadOptions& options) {
  if (stretches.rows.size() != stretches.offsets_bytes.size() ||
      stretches.rows.size() != stretches.file_numbers.size()) {
    throw std::invalid_argument("stretches: the lists must have the same length, but there are " +
                                std::to_string(stretches.file_numbers.size()) + " file numbers, " +
                                std::to_string(stretches.offsets_bytes.size()) + " offsets and " +
                                std::to_string(stretches.rows.size()) + " numbers of rows");
  }
  const std::shared_ptr<Shards> shards = shards_of(std::move(stretches.files));
  Layout layout;
  layout.format = stretches.format;
  layout.dtype = parse_descr(stretches.dtype);
  layout.shape = {0};
  layout.shape.insert(layout.shape.end(), stretches.row_shape.begin(), stretches.row_shape.end());
  auto impl =
      std::make_shared<Impl>(rows_of(layout, stretches, *shards), stretches.format, options);
  adopt_file(*impl);
  return impl;
}

}  // namespace lowtide
