// lock_pages.h - pages that stay in memory whatever the machine does meanwhile.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace lowtide {

// False, with errno, where pages cannot be locked here. The call itself: sanitizers make mlock do
// nothing.
inline bool lock_pages(const void* address, std::uint64_t size_bytes) {
  return ::syscall(SYS_mlock, address, size_bytes) == 0;
}
inline bool unlock_pages(const void* address, std::uint64_t size_bytes) {
  return ::syscall(SYS_munlock, address, size_bytes) == 0;
}

}  // namespace lowtide
