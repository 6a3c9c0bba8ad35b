// data_file.h - files whose place in the page cache a test decides, and what the kernel says of it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/extent.h"
#include "os/file.h"
#include "os/files.h"
#include "os/residency.h"
#include "os/temp_folder.h"

namespace lowtide {

// Bytes of a file that are in the page cache; nullopt where the kernel does not tell.
inline std::optional<std::uint64_t> cached_bytes(const std::string& path) {
  const auto known = residency(File(path));
  if (!known) return std::nullopt;
  return known->cached_bytes;
}

// Puts all of a file out of the page cache.
inline void evict(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0) << path;
  EXPECT_EQ(::fdatasync(fd), 0);
  EXPECT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(fd);
}

// The same until the kernel says that nothing is left: a page that somebody holds for a moment
// stays. False where some stays for good (a file system in memory); true where the kernel does not
// tell.
inline bool evict_all(const std::string& path) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    evict(path);
    if (cached_bytes(path).value_or(0) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

// Plain pread, the twin of every engine.
inline std::string plain_read(const std::string& path, std::uint64_t offset_bytes,
                              std::size_t size_bytes) {
  std::string text(size_bytes, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  std::size_t have = 0;
  while (have < size_bytes) {
    const ssize_t n =
        ::pread(fd, text.data() + have, size_bytes - have, static_cast<off_t>(offset_bytes + have));
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  ::close(fd);
  text.resize(have);
  return text;
}

// Brings a range of a file into the page cache, and nothing beside it.
inline void warm(const std::string& path, std::uint64_t offset_bytes, std::size_t size_bytes) {
  EXPECT_EQ(plain_read(path, offset_bytes, size_bytes).size(), size_bytes);
}

inline std::shared_ptr<Files> files_of(const std::vector<std::string>& paths,
                                       std::size_t max_open = 0) {
  std::vector<Shard> shards;
  for (const std::string& path : paths) shards.push_back(File(path).shard());
  return std::make_shared<Files>(std::move(shards), max_open);
}

}  // namespace lowtide
