// extent.h - the types with which all rooms describe bytes in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lowtide {

// One file as it was when it was first opened. `version` is a hash of device, inode, size and
// mtime, so a file that was replaced or rewritten since has a different one.
struct Shard {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
};

struct Extent {
  std::uint64_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
  std::uint32_t shard = 0;  // index into the data set's Shards

  [[nodiscard]] std::uint64_t end_bytes() const { return offset_bytes + size_bytes; }
};

// A request for bytes. `into` belongs to the caller and has room for from.size_bytes.
struct Read {
  Extent from;
  std::byte* into = nullptr;
};

}  // namespace lowtide
