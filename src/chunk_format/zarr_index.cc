// The index of a zarr shard: offset and size of each chunk, and a checksum.
#include "chunk_format/chunked_array.h"
#include "core/checked.h"
#include "core/crc32c.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kEntryBytes = 16, kSumBytes = 4;

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

}  // namespace

std::vector<std::uint64_t> parse_shard_index(const ChunkedArray& array,
                                             std::span<const std::byte> bytes,
                                             std::uint64_t file_bytes, const std::string& path) {
  const ShardIndex& index = *array.index;
  if (bytes.size() != index.size_bytes()) {
    throw FormatError(path + ": expected an index of " + std::to_string(index.size_bytes()) +
                      " bytes, found " + std::to_string(bytes.size()));
  }
  if (index.has_checksum) {
    const auto entries = bytes.first(bytes.size() - kSumBytes);
    const std::uint64_t expected = little_endian(bytes.last(kSumBytes));
    const std::uint32_t found = crc32c(0, entries);
    if (found != expected) {
      throw FormatError(path + ": expected CRC-32C " + std::to_string(expected) +
                        " of the shard index, as the file says, found " + std::to_string(found));
    }
  }
  std::vector<std::uint64_t> offsets(index.entries, UINT64_MAX);
  for (std::uint64_t i = 0; i < index.entries; ++i) {
    const std::uint64_t offset = little_endian(bytes.subspan(i * kEntryBytes, 8));
    const std::uint64_t size = little_endian(bytes.subspan(i * kEntryBytes + 8, 8));
    if (offset == UINT64_MAX && size == UINT64_MAX) continue;
    if (size != array.chunk_bytes || !fits_inside(offset, size, file_bytes)) {
      throw FormatError(path + ": expected " + std::to_string(array.chunk_bytes) +
                        " bytes of chunk " + std::to_string(i) + " inside the file of " +
                        std::to_string(file_bytes) + " bytes, found " + std::to_string(size) +
                        " at byte " + std::to_string(offset));
    }
    offsets[i] = offset;
  }
  return offsets;
}

}  // namespace lowtide
