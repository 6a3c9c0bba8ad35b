#include "chunk_folder/chunk_folder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "chunk_folder/local_folder.h"
#include "chunk_format/chunked_array.h"
#include "core/quote.h"
#include "format/array_format.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {
namespace {

constexpr std::size_t kMaxDepth = 32;  // of groups in groups

// How many files are looked at together: a server is asked for all of them at once.
constexpr std::size_t kTogether = 256;
// Of their indexes together.
constexpr std::uint64_t kMostIndexBytes = 8 * 1024 * 1024;

// What is in a folder inside of the files.
struct Node {
  Shard metadata;
  std::optional<ChunkedArray> array;  // nullopt: it is a group
};

// nullopt: it has no metadata.
std::optional<Node> read_node(const FolderFiles& files, const std::string& inside) {
  for (const std::string_view name : metadata_files()) {
    const std::string where = joined(inside, name);
    std::optional<FolderFiles::Text> found = files.read(where, kMaxMetadataBytes);
    if (!found) continue;
    std::optional<ChunkedArray> array =
        parse_metadata(found->text, name, joined(files.path(), where));
    return Node{std::move(found->shard), std::move(array)};
  }
  return std::nullopt;
}

void add_members(const FolderFiles& files, const std::string& inside, std::size_t depth,
                 std::vector<ArrayMember>* members) {
  for (const std::string& name : files.folders_in(inside)) {
    const std::string key = joined(inside, name);
    if (name.starts_with('.')) continue;
    ArrayMember member{.key = key, .layout = {}, .fault = {}};
    member.layout.format = chunk_words().front();  // the only one so far
    std::optional<Node> node;
    try {
      node = read_node(files, key);
      if (!node) continue;
    } catch (const FormatError& error) {
      member.fault = error.what();
    }
    if (members->size() == kMaxMembers || depth == kMaxDepth) {
      throw FormatError(files.path() + ": expected at most " + std::to_string(kMaxMembers) +
                        " arrays in groups that are at most " + std::to_string(kMaxDepth) +
                        " deep, found more");
    }
    if (node && !node->array) {
      add_members(files, key, depth + 1, members);
      continue;
    }
    if (node) member.layout = std::move(node->array->layout);
    members->push_back(std::move(member));
  }
}

// The array that the caller means, and its folder inside of the files.
std::pair<Node, std::string> chosen_node(const FolderFiles& files,
                                         const std::optional<std::string>& key) {
  std::optional<Node> root = read_node(files, "");
  if (root && root->array) {
    if (!key) return {std::move(*root), ""};
    throw std::invalid_argument(files.path() + ": key " + excerpt(*key) +
                                " was given, but the folder is an array itself; leave the key out");
  }
  const bool leads_out = key && ("/" + *key + "/").find("/../") != std::string::npos;
  if (key && !key->empty() && !leads_out) {
    std::optional<Node> node = read_node(files, *key);
    if (node && node->array) return {std::move(*node), *key};
  }
  const std::vector<ArrayMember> members = folder_members(files);
  const std::string chosen = chosen_member(members, "", key, files.path()).key;
  std::optional<Node> node = read_node(files, chosen);
  if (!node || !node->array)
    throw FormatError(joined(files.path(), chosen) + ": expected an array, found a group");
  return {std::move(*node), chosen};
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

  // The bytes of a file that say where its chunks are; none if it is one chunk.
  [[nodiscard]] FolderFiles::Range index_of(const Shard& shard) const {
    if (!array_.index) return {};
    const std::uint64_t size = array_.index->size_bytes();
    if (size > shard.size_bytes) {
      throw FormatError(shard.path + ": expected a shard index of " + std::to_string(size) +
                        " bytes, found a file of " + std::to_string(shard.size_bytes));
    }
    return {array_.index->at_end ? shard.size_bytes - size : 0, size};
  }

  // The file at this place of the grid of files, and its index.
  void add(const Shard& shard, const std::vector<std::uint64_t>& place,
           std::span<const std::byte> index) {
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
    Places local(inside_);
    for (const std::uint64_t offset :
         parse_shard_index(array_, index, shard.size_bytes, shard.path)) {
      std::vector<std::uint64_t> chunk = local.at();
      for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
        chunk[axis] += place[axis] * inside_[axis];
      }
      put(chunk, offset);
      (void)local.advance();
    }
  }

 private:
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

// Looks at all files of the array.
void locate_chunks(const FolderFiles& files, const std::string& inside, const ChunkedArray& array,
                   LocatedArray* found) {
  ChunkFiles chunks(array, found);
  std::size_t together = kTogether;
  if (array.index)
    together = std::clamp<std::size_t>(kMostIndexBytes / array.index->size_bytes(), 1, kTogether);
  Places place(divided(array.layout.shape, array.file_shape));
  for (bool more = true; more;) {
    std::vector<std::string> names;
    std::vector<std::vector<std::uint64_t>> places;
    for (; more && names.size() < together; more = place.advance()) {
      places.push_back(place.at());
      names.push_back(joined(inside, array.file_name(place.at())));
    }
    files.look(
        names, [&](const Shard& shard) { return chunks.index_of(shard); },
        [&](std::size_t name, const Shard& shard, std::span<const std::byte> index) {
          chunks.add(shard, places[name], index);
        });
  }
}

}  // namespace

bool is_chunk_folder(const FolderFiles& files) {
  return std::ranges::any_of(metadata_files(), [&](std::string_view name) {
    return files.read(std::string(name), kMaxMetadataBytes).has_value();
  });
}

std::vector<ArrayMember> folder_members(const std::string& folder) {
  return folder_members(LocalFolder(folder));
}

std::vector<ArrayMember> folder_members(const FolderFiles& files) {
  std::vector<ArrayMember> members;
  std::optional<Node> root = read_node(files, "");
  if (root && root->array) {
    members.push_back({.key = "", .layout = std::move(root->array->layout), .fault = {}});
  } else {
    add_members(files, "", 0, &members);
  }
  return members;
}

LocatedArray locate_folder(const std::string& path, const raw::Description& given,
                           std::uint64_t memory_bytes) {
  return locate_folder(LocalFolder(whole_path(path)), given, memory_bytes);
}

LocatedArray locate_folder(const FolderFiles& files, const raw::Description& given,
                           std::uint64_t memory_bytes) {
  const auto [node, inside] = chosen_node(files, given.key);
  const ChunkedArray& array = *node.array;
  const std::string folder = inside.empty() ? files.path() : joined(files.path(), inside);
  check_agrees(array.layout, given, folder);
  LocatedArray found{.layout = array.layout, .table = {}, .path = files.path()};
  found.shards->add(node.metadata);  // an array may have no other file
  found.table.chunk_shape = array.chunk_shape;
  found.table.fill = array.fill;
  if (array.layout.data_bytes == 0) return found;
  const std::uint64_t chunks = ChunkGrid::count(array.layout.shape, array.chunk_shape, folder);
  const std::uint64_t table_bytes = chunks * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
  if (table_bytes > memory_bytes) {
    throw std::invalid_argument(folder + ": the table of " + std::to_string(chunks) +
                                " chunks needs " + format_bytes(table_bytes) +
                                ", but memory is only " + format_bytes(memory_bytes) +
                                ": use more memory, or larger chunks");
  }
  found.table.offsets_bytes.assign(chunks, ChunkTable::kAbsent);
  found.table.shards.assign(chunks, 0);
  locate_chunks(files, inside, array, &found);
  return found;
}

}  // namespace lowtide
