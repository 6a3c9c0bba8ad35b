// drop_behind.h - the page cache that a map brought in, dropped again; what was there before stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/file.h"

namespace lowtide {

// Works in windows of 2 MiB of the file: the kernel keeps a folio of which a part is outside the
// range. Remembers one bit a window. Not for two threads at once.
class DropBehind {
 public:
  static constexpr std::uint64_t kWindowBytes = 2 * 1024 * 1024;

  // Asks the kernel what is cached now; where it does not tell, nothing counts as cached before.
  // Throws IoError.
  DropBehind(const std::string& path, std::uint64_t offset_bytes, std::uint64_t size_bytes);

  // Drops the windows of the range that were not cached before. Pages that somebody maps, also this
  // process, stay; dirty ones are sent to the disk and stay until the next time.
  void drop() noexcept;

 private:
  void ask(std::uint64_t first, std::uint64_t end);

  File file_;
  std::uint64_t first_window_;
  std::vector<bool> had_;  // by window: something of it was cached
};

}  // namespace lowtide
