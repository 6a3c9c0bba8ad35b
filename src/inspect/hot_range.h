// hot_range.h - the part of a file that is in the page cache: found, or brought in for a while.
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

// The longest part that is wholly cached, less what the kernel's read-ahead could reach behind it.
// Empty where there is none, and where the kernel does not tell.
[[nodiscard]] ByteRange find_hot_range(const File& file);

// Brings the first bytes of a file into the page cache by reading them; when it goes, it puts those
// out again that were not there before, by blocks of 4 MiB of which nothing was; all of them where
// the whole file was `cold`. Where the kernel does not tell what was there, all of them stay.
class WarmRange {
 public:
  // Where `stop` says so it reads no further, and the range is empty. Throws IoError.
  WarmRange(std::shared_ptr<const File> file, std::uint64_t size_bytes, bool cold,
            const std::function<bool()>& stop = {});
  ~WarmRange();
  WarmRange(const WarmRange&) = delete;
  WarmRange& operator=(const WarmRange&) = delete;

  [[nodiscard]] ByteRange range() const { return range_; }
  [[nodiscard]] bool stays() const { return stays_; }  // nothing will be put out

 private:
  std::shared_ptr<const File> file_;
  ByteRange range_;
  bool stays_ = false;
  std::vector<std::uint64_t> brought_in_bytes_;  // where the blocks begin
};

}  // namespace lowtide
