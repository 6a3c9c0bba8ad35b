// extent.h - the types with which all rooms describe bytes in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/remote.h"

namespace lowtide {

// One file as it was when it was first opened. `version` is a hash of device, inode, size and
// mtime, so a file that was replaced or rewritten since has a different one. An object on a server
// is a shard too: its path is its address without secrets, its version a hash of its ETag.
struct Shard {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
  std::shared_ptr<const Remote> remote = nullptr;  // nullptr: a local file
};

// The version of a file of ours that others write to: opening it again does not compare.
inline constexpr std::uint64_t kAnyVersion = 0;

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
