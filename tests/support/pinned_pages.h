// pinned_pages.h - pages that stay in the page cache whatever the machine does meanwhile.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "os/sys.h"
#include "support/data_file.h"
#include "support/lock_pages.h"

namespace lowtide {

// Holds the first `size_bytes` of a file in the page cache for as long as it lives: they are mapped
// and locked, so neither a kernel short of memory nor anybody's drop_caches takes them. They cannot
// be dropped by the code under test either: what it tries is seen by DropSpy.
class PinnedPages {
 public:
  PinnedPages(const std::string& path, std::size_t size_bytes) : size_bytes_(size_bytes) {
    warm(path, 0, size_bytes);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* const at = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
    const int err = errno;
    ::close(fd);
    if (at == MAP_FAILED) {
      why_not_ = std::string("mmap: ") + std::strerror(err);
      return;
    }
    at_ = at;
    (void)::madvise(at_, size_bytes, MADV_RANDOM);  // nothing beside the range
    if (!lock_pages(at_, size_bytes)) {
      why_not_ = std::string("pages cannot be locked (RLIMIT_MEMLOCK): ") + std::strerror(errno);
    }
  }
  ~PinnedPages() {
    if (at_ != nullptr) ::munmap(at_, size_bytes_);
  }
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;

  // Why the pages are not pinned; empty: they are.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  void* at_ = nullptr;
  std::size_t size_bytes_;
  std::string why_not_;
};

// Sees every request to drop cached pages for as long as it lives, and passes it on.
class DropSpy {
 public:
  DropSpy() : fault_(sys::table.fadvise, &fadvise) {
    first_bytes_ = std::numeric_limits<std::uint64_t>::max();
    real_ = fault_.real();
  }
  // The first byte that was to be dropped; the largest number where none was.
  [[nodiscard]] static std::uint64_t first_bytes() { return first_bytes_; }

 private:
  static int fadvise(int fd, off_t offset, off_t size, int advice) {
    const auto from = static_cast<std::uint64_t>(offset);
    std::uint64_t least = first_bytes_;
    while (advice == POSIX_FADV_DONTNEED && from < least &&
           !first_bytes_.compare_exchange_weak(least, from)) {
    }
    return real_(fd, offset, size, advice);
  }
  static inline std::atomic<std::uint64_t> first_bytes_;
  static inline decltype(sys::Table::fadvise) real_;
  sys::Fault<decltype(sys::Table::fadvise)> fault_;
};

}  // namespace lowtide
