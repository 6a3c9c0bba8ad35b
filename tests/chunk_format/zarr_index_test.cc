#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "chunk_format/chunked_array.h"
#include "core/crc32c.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::zarr_index_test {
namespace {

struct Entry {
  std::uint64_t offset, size;
};

constexpr std::uint64_t kNone = UINT64_MAX;

std::vector<std::byte> index_of(const std::vector<Entry>& entries, bool has_checksum) {
  std::vector<std::byte> bytes(entries.size() * sizeof(Entry));
  std::memcpy(bytes.data(), entries.data(), bytes.size());
  if (!has_checksum) return bytes;
  const std::uint32_t sum = crc32c(0, bytes);
  bytes.resize(bytes.size() + sizeof(sum));
  std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
  return bytes;
}

ChunkedArray array_of(std::uint64_t entries, bool has_checksum) {
  ChunkedArray array;
  array.chunk_bytes = 10;
  array.index = ShardIndex{.has_checksum = has_checksum, .entries = entries};
  return array;
}

TEST(ZarrIndex, SaysWhereChunksAre) {
  for (const bool has_checksum : {false, true}) {
    const auto bytes = index_of({{30, 10}, {kNone, kNone}, {0, 10}}, has_checksum);
    EXPECT_EQ(parse_shard_index(array_of(3, has_checksum), bytes, 40, "c/0"),
              (std::vector<std::uint64_t>{30, kNone, 0}));
  }
}

TEST(ZarrIndex, RefusesWhatIsNotInTheShard) {
  for (const Entry wrong : {Entry{31, 10}, {kNone, 10}, {0, kNone}, {0, 9}, {kNone - 5, 10}}) {
    const auto error = thrown<FormatError>(
        [&] { (void)parse_shard_index(array_of(1, false), index_of({wrong}, false), 40, "c/0"); });
    EXPECT_TRUE(error.starts_with("c/0: expected 10 bytes of chunk 0 inside the file of 40 bytes"))
        << error;
  }
}

TEST(ZarrIndex, ComparesTheChecksum) {
  EXPECT_EQ(crc32c(0, std::as_bytes(std::span("123456789", 9))), 0xe3069283U);
  auto bytes = index_of({{0, 10}}, true);
  bytes[3] ^= std::byte{1};
  EXPECT_NE(thrown<FormatError>([&] {
              (void)parse_shard_index(array_of(1, true), bytes, 40, "c/0");
            }).find("CRC-32C"),
            std::string::npos);
}

}  // namespace
}  // namespace lowtide::zarr_index_test
