// drop_behind.h - drops the page cache that a map brought in, but not what was cached before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/file.h"

namespace lowtide {

// Works in 2 MiB slabs of the file, because the kernel keeps a folio that lies partly outside the
// requested range. Stores one bit per slab. Use it from one thread at a time.
class DropBehind {
 public:
  static constexpr std::uint64_t kSlabBytes = 2 * 1024 * 1024;

  // Asks the kernel what is cached now; if it does not say, nothing counts as cached before.
  // Throws IoError.
  DropBehind(const std::string& path, std::uint64_t offset_bytes, std::uint64_t size_bytes);

  // Drops the slabs of the range that were not cached before. Pages that any process maps,
  // including this one, stay; dirty pages are sent to disk and stay until the next time.
  void drop() noexcept;

 private:
  void ask(std::uint64_t first, std::uint64_t end);

  File file_;
  std::uint64_t first_slab_;
  std::vector<bool> had_;  // per slab: some of it was cached
};

}  // namespace lowtide
