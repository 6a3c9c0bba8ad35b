#include "os/residency.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "os/file.h"
#include "os/sys.h"

namespace lowtide {
namespace {

constexpr std::uint32_t kOverlay = 0x794c7630;
constexpr std::uint32_t kTmpfs = 0x01021994;
constexpr std::uint32_t kRamfs = 0x858458f6;
constexpr std::uint32_t kHugetlbfs = 0x958458f6;

// 0 if it cannot be read, which is no file system.
std::uint32_t magic_of(const File& file) {
  struct statfs known {};
  if (sys::table.fstatfs(file.fd(), &known) != 0) return 0;
  return static_cast<std::uint32_t>(known.f_type);
}

std::string reason(int err) {
  switch (err) {
    case ENOSYS:
      return "cachestat: not available before Linux 6.5";
    case EPERM:
      return "cachestat: forbidden for files this user may not write (EPERM)";
    case EOPNOTSUPP:
      return "cachestat: not supported by this file system (EOPNOTSUPP)";
    default:
      return "cachestat: " + std::generic_category().message(err);
  }
}

}  // namespace

std::optional<Residency> residency(const File& file, std::uint64_t offset_bytes,
                                   std::uint64_t size_bytes, std::string* why) {
  const std::uint64_t file_bytes = file.shard().size_bytes;
  if (offset_bytes >= file_bytes) return Residency{};
  std::uint64_t range_bytes = file_bytes - offset_bytes;
  if (size_bytes != 0) range_bytes = std::min(range_bytes, size_bytes);

  const sys::CachestatRange range{offset_bytes, range_bytes};
  sys::Cachestat counts{};
  if (sys::table.cachestat(file.fd(), &range, &counts) != 0) {
    if (why != nullptr) *why = reason(errno);
    return std::nullopt;
  }
  if (counts.cached_pages == 0 && is_overlay(file)) {
    if (why != nullptr)
      *why = "cachestat: overlayfs does not report what is cached of the underlying file";
    return std::nullopt;
  }
  const auto to_bytes = [range_bytes](std::uint64_t pages) {
    return std::min(pages * page_bytes(), range_bytes);
  };
  return Residency{to_bytes(counts.cached_pages),
                   to_bytes(counts.dirty_pages + counts.writeback_pages),
                   to_bytes(counts.writeback_pages)};
}

bool lives_in_memory(const File& file) noexcept {
  const std::uint32_t magic = magic_of(file);
  return magic == kTmpfs || magic == kRamfs || magic == kHugetlbfs;
}

bool is_overlay(const File& file) noexcept {
  return magic_of(file) == kOverlay;
}

int write_back(const File& file) noexcept {
  while (sys::table.fdatasync(file.fd()) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace lowtide
