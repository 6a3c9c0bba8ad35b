// mapped_file.h - a file mapped shared, and reading it page by page.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

#include "os/residency.h"
#include "os/temp_folder.h"
#include "support/lock_pages.h"
#include "system/mapped_pages.h"

namespace lowtide {

class MappedFile {
 public:
  MappedFile(const std::string& path, std::uint64_t size_bytes, int protection = PROT_READ,
             int flags = MAP_SHARED)
      : size_bytes_(size_bytes) {
    const int fd = ::open(path.c_str(), (protection & PROT_WRITE) != 0 ? O_RDWR : O_RDONLY);
    void* const at = ::mmap(nullptr, size_bytes, protection, flags, fd, 0);
    ::close(fd);
    EXPECT_NE(at, MAP_FAILED);
    at_ = at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
  }
  ~MappedFile() { unmap(); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  void unmap() {
    if (at_ != nullptr) ::munmap(at_, size_bytes_);
    at_ = nullptr;
  }
  [[nodiscard]] unsigned char* data() const { return at_; }
  [[nodiscard]] std::uint64_t size() const { return size_bytes_; }

  // Touches every page of the range.
  std::uint64_t read(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
    std::uint64_t sum = 0;
    for (std::uint64_t i = offset_bytes; i < offset_bytes + size_bytes; i += page_bytes()) {
      sum += static_cast<volatile unsigned char*>(at_)[i];
    }
    return sum;
  }
  [[nodiscard]] std::optional<std::uint64_t> entered_bytes() const {
    return PageCounter().entered_bytes(at_, size_bytes_);
  }

 private:
  unsigned char* at_ = nullptr;
  std::uint64_t size_bytes_;
};

// A file of zeros that takes no room on the disk.
inline std::string sparse_file(const TempFolder& folder, const std::string& name,
                               std::uint64_t size_bytes) {
  const std::string path = folder.write(name, "");
  EXPECT_EQ(::truncate(path.c_str(), static_cast<off_t>(size_bytes)), 0);
  return path;
}

}  // namespace lowtide
