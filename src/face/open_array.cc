#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include "chunk_folder/chunk_folder.h"
#include "face/array_impl.h"
#include "format/array_header.h"
#include "format/descr.h"
#include "format/registry.h"
#include "http/listing.h"
#include "lowtide/error.h"
#include "opener/listed_objects.h"
#include "opener/remote_folder.h"
#include "opener/source_file.h"
#include "os/paths.h"

namespace lowtide {
namespace {

using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{1} << 48;

// For one of several raw files that are joined: the given shape says what the other axes are, the
// file size says how many rows.
void give_rows(Layout* layout, const Shape& shape, const std::string& path) {
  std::uint64_t inner = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) inner *= shape[axis];
  const std::uint64_t elements = layout->shape.at(0);
  if (inner == 0 || elements % inner != 0) {
    throw FormatError(path + ": " + std::to_string(elements) +
                      " elements are not a whole number of rows of " + std::to_string(inner) +
                      " elements, as shape " + shape_text(shape) + " requires");
  }
  layout->shape = shape;
  layout->shape[0] = elements / inner;
}

raw::Description description_of(const OpenOptions& options) {
  raw::Description given;
  if (options.dtype) given.dtype = parse_descr(*options.dtype);
  given.shape = options.shape;
  given.offset_bytes = options.offset_bytes;
  given.fortran_order = options.fortran_order;
  given.headerless = options.headerless;
  given.key = options.key;
  return given;
}

// `file` is the one at `path`.
Layout layout_of(const SourceFile& file, const std::string& path, const OpenOptions& options,
                 bool several) {
  raw::Description given = description_of(options);
  if (several) given.shape.reset();
  Layout layout = open_layout(
      path, file.shard().size_bytes,
      [&](std::uint64_t offset, std::span<std::byte> out) { file.read_exact(offset, out); }, given);
  if (several && options.shape && !options.shape->empty() && !has_header(layout.format)) {
    if (options.fortran_order.value_or(false)) {
      throw std::invalid_argument(
          "several raw files in Fortran order cannot be joined; open each on its own");
    }
    give_rows(&layout, *options.shape, path);
  }
  return layout;
}

std::vector<std::string> array_objects(const std::string& address, const OpenOptions& options) {
  const ListedObjects listed(options.sign, options.list);
  if (is_folder_address(address)) {
    SourceOpener opener(options.sign);
    if (is_chunk_folder(RemoteFolder(address, opener, listed))) return {address};
  }
  if (!is_listed(address)) return {address};
  if (!address.ends_with('/')) return listed.matches(address);
  std::vector<std::string> files =
      array_files_in(address.substr(0, address.size() - 1), listed.names_in(address));
  if (files.empty()) {
    throw IoError(ENOENT, "open", shown_address(address), std::nullopt,
                  "no array is in this folder");
  }
  return files;
}

// The array in chunks at this path or address; nullopt if it is something else.
std::optional<LocatedArray> located_folder(const std::string& path, const OpenOptions& options) {
  // Who only looks has no budget, but a table must not grow with what a file merely says.
  const std::uint64_t given = options.read.memory_bytes;
  const bool known = given != 0 && given <= kMostMemoryBytes;
  const std::uint64_t memory_bytes = known ? given : default_memory_bytes();
  if (!is_address(path)) {
    if (!is_chunk_folder(path)) return std::nullopt;
    return locate_folder(path, description_of(options), memory_bytes);
  }
  if (!is_folder_address(path)) return std::nullopt;
  SourceOpener opener(options.sign);
  const ListedObjects listed(options.sign, options.list);
  const RemoteFolder folder(path, opener, listed);
  if (!is_chunk_folder(folder)) return std::nullopt;
  LocatedArray found = locate_folder(folder, description_of(options), memory_bytes);
  found.path = shown_address(path);  // as it is opened again
  return found;
}

// What the rows hold for their files and chunks. `shared`: the table of chunks is another array's.
Budget::Entry table_of(const Rows& rows, bool shared) {
  const ChunkGrid* const chunks = rows.chunks();
  if (chunks == nullptr) {
    const std::size_t stretches = rows.stretches();
    if (stretches == rows.shards()->size()) return {"", rows.held_bytes()};
    return {"the table of " + std::to_string(stretches) + " stretches", rows.held_bytes()};
  }
  if (shared) return {"", rows.held_bytes() - chunks->held_bytes()};
  return {"the table of " + std::to_string(chunks->chunks()) + " chunks", rows.held_bytes()};
}

}  // namespace

std::vector<std::string> array_paths(const std::string& path, const OpenOptions& options) {
  if (is_address(path)) return array_objects(path, options);
  if (is_chunk_folder(path)) return {path};
  if (is_folder(path)) {
    std::vector<std::string> files = array_files_in(path, list_folder(path));
    if (!files.empty()) return files;
  }
  return expand_path(path);
}

std::shared_ptr<Array::Impl> Array::Impl::open(std::vector<std::string> paths,
                                               const OpenOptions& options) {
  if (paths.empty()) throw std::invalid_argument("open: the list of files is empty");
  const bool several = paths.size() > 1;
  if (!several) {
    if (std::optional<LocatedArray> found = located_folder(paths[0], options))
      return open(std::move(*found), options.read);
  }
  const auto rows = std::make_shared<Rows>();
  std::string format;
  SourceOpener opener(options.sign);
  // Kept open, so that the data comes from the file of the header.
  std::shared_ptr<SourceFile> last;
  for (const std::string& path : paths) {
    const std::shared_ptr<SourceFile> file = opener.open(path);
    Shard shard = file->shard();
    if (several && shard.size_bytes == 0) continue;
    const bool local = file->local() != nullptr;
    Layout layout = layout_of(*file, local ? path : shard.path, options, several);
    format = layout.format;
    rows->add({std::move(layout), std::move(shard)});
    last = file;
  }
  if (rows->shards()->size() == 0) {
    throw FormatError(shown_address(paths[0]) + ": expected data, found none in any of the " +
                      std::to_string(paths.size()) + " files");
  }
  if (several && options.shape && *options.shape != rows->shape()) {
    throw FormatError(shown_address(paths[0]) + " and " + std::to_string(paths.size() - 1) +
                      " more: shape " + shape_text(*options.shape) +
                      " was given, but the files together have " + shape_text(rows->shape()));
  }
  const auto shard = static_cast<std::uint32_t>(rows->shards()->size() - 1);
  auto impl = std::make_shared<Impl>(rows, std::move(format), options.read);
  if (last->local() != nullptr) impl->holder->store()->files().adopt(shard, last->local());
  return impl;
}

Array::Impl::Impl(std::shared_ptr<const Rows> of, std::string named, const ReadOptions& options,
                  std::string opened, bool shared)
    : rows(std::move(of)),
      format(std::move(named)),
      path(std::move(opened)),
      holder(std::make_shared<StoreHolder>("the array", rows->shards(), options,
                                           Budget::Entry{"one row", rows->sample_bytes()},
                                           table_of(*rows, shared))) {}

}  // namespace lowtide
