// hot_range.h - the part of a file that is in the page cache: found there, or loaded for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "os/file.h"

namespace lowtide {

struct ByteRange {
  std::uint64_t first_bytes = 0;
  std::uint64_t size_bytes = 0;
};

// The longest part that is fully cached, minus what the kernel's read-ahead could reach beyond it.
// Empty if there is none, or if the kernel does not report it.
[[nodiscard]] ByteRange find_hot_range(const File& file);

// Loads the start of a file into the page cache by reading it. The destructor evicts what was not
// cached before, in zones of 4 MiB of which nothing was cached; all zones if the whole file was
// `cold`. If the kernel does not report what was cached before, everything stays.
class WarmRange {
 public:
  // Stops when `stop` returns true; the range is then empty. Throws IoError.
  WarmRange(std::shared_ptr<const File> file, std::uint64_t size_bytes, bool cold,
            const std::function<bool()>& stop = {});
  ~WarmRange();
  WarmRange(const WarmRange&) = delete;
  WarmRange& operator=(const WarmRange&) = delete;

  [[nodiscard]] ByteRange range() const { return range_; }
  [[nodiscard]] bool stays() const { return stays_; }  // nothing will be evicted

 private:
  std::shared_ptr<const File> file_;
  ByteRange range_;
  bool stays_ = false;
  std::vector<std::uint64_t> brought_in_bytes_;  // the offsets of the zones
};

}  // namespace lowtide
