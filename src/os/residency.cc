#include "os/residency.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "os/file.h"
#include "os/mount.h"
#include "os/sys.h"

namespace lowtide {
namespace {

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
  if (counts.cached_pages == 0 && is_overlay(file.fd())) {
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

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace lowtide
