// chunked_array.h - an array that is a folder: a file with metadata, and a file per chunk.
//
// A file may also be a shard of several chunks, whose index says where they are. A chunk that has
// no file, or no entry, was never written. A group is a folder of such folders. Only uncompressed
// chunks in C order are read; a FormatError names any codec. Pure: opens nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/layout.h"

namespace lowtide {

constexpr std::uint64_t kMaxMetadataBytes = 64 * 1024 * 1024;

// How the chunks of a shard are found.
struct ShardIndex {
  bool at_end = true;
  bool has_checksum = false;
  std::uint64_t entries = 0;  // chunks per shard

  [[nodiscard]] std::uint64_t size_bytes() const { return entries * 16 + (has_checksum ? 4 : 0); }
};

struct ChunkedArray {
  Layout layout;                           // its data_offset_bytes has no meaning
  std::vector<std::uint64_t> chunk_shape;  // as many axes as the array
  std::vector<std::uint64_t> file_shape;   // what one file holds: one chunk, or a shard of several
  std::uint64_t chunk_bytes = 0;
  std::vector<std::byte> fill;      // one element; empty: zeros
  std::optional<ShardIndex> index;  // if files are shards
  bool has_prefix = false;          // names of files begin with "c"
  char separator = '/';

  // The name of a file inside the folder of the array, by its place in the grid of files.
  [[nodiscard]] std::string file_name(std::span<const std::uint64_t> place) const;
};

// The words of these formats: values of Layout::format.
[[nodiscard]] std::span<const std::string_view> chunk_words();
// The names of the files that make a folder such an array or a group; the first that exists counts.
[[nodiscard]] std::span<const std::string_view> metadata_files();

// Parses the metadata in the file with this name, which is at `path`. nullopt: it is a group.
// Throws FormatError, which names the path.
[[nodiscard]] std::optional<ChunkedArray> parse_metadata(std::string_view text,
                                                         std::string_view file,
                                                         const std::string& path);

// Where the chunks of a shard are, in C order; UINT64_MAX: never written. `bytes` is the index of a
// shard of `file_bytes`. Throws FormatError, which names `path`, for a wrong checksum, a chunk that
// has another size than an uncompressed one, and one that is not inside the shard.
[[nodiscard]] std::vector<std::uint64_t> parse_shard_index(const ChunkedArray& array,
                                                           std::span<const std::byte> bytes,
                                                           std::uint64_t file_bytes,
                                                           const std::string& path);

}  // namespace lowtide
