#include "chunk_folder/chunk_folder.h"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "chunk_format/chunked_array.h"
#include "core/quote.h"
#include "format/array_format.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"

namespace lowtide {
namespace {

constexpr std::size_t kMaxDepth = 32;  // of groups in groups

// The file with the metadata of a folder; empty if there is none.
std::string_view metadata_in(const std::string& folder) {
  for (const std::string_view name : metadata_files()) {
    if (path_exists(folder + "/" + std::string(name))) return name;
  }
  return {};
}

// The array in a folder; nullopt for a group. `shard` becomes the file with the metadata.
std::optional<ChunkedArray> read_metadata(const std::string& folder, Shard* shard = nullptr) {
  const std::string_view name = metadata_in(folder);
  const std::string path = folder + "/" + std::string(name);
  const File file(path);
  const std::uint64_t size = file.shard().size_bytes;
  if (size > kMaxMetadataBytes) {
    throw FormatError(path + ": expected at most " + format_bytes(kMaxMetadataBytes) +
                      " of metadata, found " + format_bytes(size));
  }
  std::string text(size, '\0');
  file.read_exact(0, std::as_writable_bytes(std::span(text)));
  if (shard != nullptr) *shard = file.shard();
  return parse_metadata(text, name, path);
}

void add_members(const std::string& folder, const std::string& prefix, std::size_t depth,
                 std::vector<ArrayMember>* members) {
  for (const std::string& name : list_folder(folder)) {
    const std::string inside = folder + "/" + name, key = prefix + name;
    if (name.starts_with('.') || !is_folder(inside) || metadata_in(inside).empty()) continue;
    if (members->size() == kMaxMembers || depth == kMaxDepth) {
      throw FormatError(folder + ": expected at most " + std::to_string(kMaxMembers) +
                        " arrays in groups that are at most " + std::to_string(kMaxDepth) +
                        " deep, found more");
    }
    ArrayMember member{.key = key, .layout = {}, .fault = {}};
    member.layout.format = chunk_words().front();  // the only one so far
    try {
      std::optional<ChunkedArray> array = read_metadata(inside);
      if (!array) {
        add_members(inside, key + "/", depth + 1, members);
        continue;
      }
      member.layout = std::move(array->layout);
    } catch (const FormatError& error) {
      member.fault = error.what();
    }
    members->push_back(std::move(member));
  }
}

// The folder of the array that the caller means.
std::string chosen_folder(const std::string& folder, const std::optional<std::string>& key) {
  if (read_metadata(folder)) {
    if (!key) return folder;
    throw std::invalid_argument(folder + ": key " + excerpt(*key) +
                                " was given, but the folder is an array itself; leave the key out");
  }
  const bool leads_out = key && ("/" + *key + "/").find("/../") != std::string::npos;
  if (key && !key->empty() && !leads_out) {
    const std::string inside = folder + "/" + *key;
    if (is_chunk_folder(inside) && read_metadata(inside)) return inside;
  }
  const std::vector<ArrayMember> members = folder_members(folder);
  return folder + "/" + chosen_member(members, "", key, folder).key;
}

// Goes through a grid in C order.
class Places {
 public:
  explicit Places(std::vector<std::uint64_t> extents)
      : extents_(std::move(extents)), at_(extents_.size(), 0) {}

  [[nodiscard]] const std::vector<std::uint64_t>& at() const { return at_; }
  // False after the last one.
  [[nodiscard]] bool advance() {
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      if (++at_[axis] < extents_[axis]) return true;
      at_[axis] = 0;
    }
    return false;
  }

 private:
  std::vector<std::uint64_t> extents_, at_;
};

std::vector<std::uint64_t> divided(const std::vector<std::uint64_t>& extents,
                                   const std::vector<std::uint64_t>& by) {
  std::vector<std::uint64_t> counts;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    counts.push_back(extents[axis] / by[axis] + (extents[axis] % by[axis] == 0 ? 0 : 1));
  }
  return counts;
}

// Fills the table of chunks, file after file.
class ChunkFiles {
 public:
  ChunkFiles(const ChunkedArray& array, LocatedArray* into)
      : array_(array),
        into_(*into),
        grid_(divided(array.layout.shape, array.chunk_shape)),
        inside_(divided(array.file_shape, array.chunk_shape)) {}

  // The file at this place of the grid of files.
  void add(const File& file, const std::vector<std::uint64_t>& place) {
    const Shard shard = file.shard();
    number_ = static_cast<std::uint32_t>(into_.shards->size());
    into_.shards->add(shard);
    if (!array_.index) {
      if (shard.size_bytes != array_.chunk_bytes) {
        throw FormatError(shard.path + ": expected a chunk of " +
                          std::to_string(array_.chunk_bytes) + " bytes, found " +
                          std::to_string(shard.size_bytes));
      }
      put(place, 0);
      return;
    }
    const std::vector<std::uint64_t> offsets = read_index(file, shard);
    Places local(inside_);
    for (const std::uint64_t offset : offsets) {
      std::vector<std::uint64_t> chunk = local.at();
      for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
        chunk[axis] += place[axis] * inside_[axis];
      }
      put(chunk, offset);
      (void)local.advance();
    }
  }

 private:
  [[nodiscard]] std::vector<std::uint64_t> read_index(const File& file, const Shard& shard) const {
    const std::uint64_t size = array_.index->size_bytes();
    if (size > shard.size_bytes) {
      throw FormatError(shard.path + ": expected a shard index of " + std::to_string(size) +
                        " bytes, found a file of " + std::to_string(shard.size_bytes));
    }
    std::vector<std::byte> bytes(size);
    file.read_exact(array_.index->at_end ? shard.size_bytes - size : 0, bytes);
    return parse_shard_index(array_, bytes, shard.size_bytes, shard.path);
  }

  // A chunk of a shard may be beyond the edge of the array.
  void put(const std::vector<std::uint64_t>& chunk, std::uint64_t offset) {
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
      if (chunk[axis] >= grid_[axis]) return;
      number = number * grid_[axis] + chunk[axis];
    }
    into_.table.offsets_bytes[number] = offset;
    into_.table.shards[number] = number_;
  }

  const ChunkedArray& array_;
  LocatedArray& into_;
  const std::vector<std::uint64_t> grid_, inside_;
  std::uint32_t number_ = 0;  // of the file
};

}  // namespace

bool is_chunk_folder(const std::string& path) {
  return is_folder(path) && !metadata_in(path).empty();
}

std::vector<ArrayMember> folder_members(const std::string& folder) {
  std::vector<ArrayMember> members;
  if (std::optional<ChunkedArray> array = read_metadata(folder)) {
    members.push_back({.key = "", .layout = std::move(array->layout), .fault = {}});
  } else {
    add_members(folder, "", 0, &members);
  }
  return members;
}

LocatedArray locate_folder(const std::string& path, const raw::Description& given,
                           std::uint64_t memory_bytes) {
  const std::string whole = whole_path(path);
  const std::string folder = chosen_folder(whole, given.key);
  Shard metadata;
  const std::optional<ChunkedArray> array = read_metadata(folder, &metadata);
  if (!array) throw FormatError(folder + ": expected an array, found a group");
  check_agrees(array->layout, given, folder);
  LocatedArray found{.layout = array->layout, .table = {}, .path = whole};
  found.shards->add(metadata);  // an array may have no other file
  found.table.chunk_shape = array->chunk_shape;
  found.table.fill = array->fill;
  if (array->layout.data_bytes == 0) return found;
  const std::uint64_t chunks = ChunkGrid::count(array->layout.shape, array->chunk_shape, folder);
  const std::uint64_t table_bytes = chunks * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
  if (table_bytes > memory_bytes) {
    throw std::invalid_argument(folder + ": the table of " + std::to_string(chunks) +
                                " chunks needs " + format_bytes(table_bytes) +
                                ", but memory is only " + format_bytes(memory_bytes) +
                                ": use more memory, or larger chunks");
  }
  found.table.offsets_bytes.assign(chunks, ChunkTable::kAbsent);
  found.table.shards.assign(chunks, 0);
  ChunkFiles files(*array, &found);
  Places place(divided(array->layout.shape, array->file_shape));
  do {
    const std::string name = folder + "/" + array->file_name(place.at());
    if (path_exists(name)) files.add(File(name), place.at());
  } while (place.advance());
  return found;
}

}  // namespace lowtide
