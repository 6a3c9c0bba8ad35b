// The functions of libc that the shim stands in for. Each does what the next library's does; what
// it adds is a change of the table. None allocates, and errno is the real call's.
#include <cerrno>
#include <cstdarg>

#include "ceiling/shim/shim.h"
#include "os/bare.h"

#define LOWTIDE_HOOK extern "C" __attribute__((visibility("default")))

extern "C" char** environ;

namespace lowtide::ceiling {

namespace {

constexpr std::uint64_t kSmallestBytes = 1 << 20;

using Mmap = void* (*)(void*, std::size_t, int, int, int, off_t);
using Munmap = int (*)(void*, std::size_t);
using Mremap = void* (*)(void*, std::size_t, std::size_t, int, ...);
using Mprotect = int (*)(void*, std::size_t, int);
using PkeyMprotect = int (*)(void*, std::size_t, int, int);

// Null until the constructor ran: constructors of other libraries may map before.
struct Next {
  Mmap mmap;
  Munmap munmap;
  Mremap mremap;
  Mprotect mprotect;
  PkeyMprotect pkey_mprotect;
};
constinit Next next{};

template <typename Result>
Result told(long result) {
  if (result >= 0 || result < -4095) return (Result)result;
  errno = static_cast<int>(-result);
  return (Result)-1;
}

bare::Range range_of(const void* at, std::size_t size_bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t rest = bare::page_bytes() - 1;
  return {start, (start + size_bytes + rest) & ~rest};
}

bool coverable(std::size_t size_bytes, int protection, int flags, int fd, Entry& entry) {
  if (size_bytes < kSmallestBytes || (flags & MAP_ANONYMOUS) != 0 || fd < 0) return false;
  if ((protection & PROT_EXEC) != 0) return false;
  struct stat file {};
  if (bare::stat_of(fd, &file) != 0 || !S_ISREG(file.st_mode) || bare::kept_in_memory(fd)) {
    return false;
  }
  entry.inode = file.st_ino;
  entry.stat_device = file.st_dev;
  const int type = flags & MAP_TYPE;
  if (type == MAP_SHARED || type == MAP_SHARED_VALIDATE) {
    entry.kind = Kind::shared;
  } else {
    entry.kind = (protection & PROT_WRITE) != 0 ? Kind::private_dirty : Kind::private_clean;
  }
  return true;
}

void* real_mmap(void* at, std::size_t size_bytes, int protection, int flags, int fd, off_t offset) {
  if (next.mmap != nullptr) return next.mmap(at, size_bytes, protection, flags, fd, offset);
  return told<void*>(bare::map(at, size_bytes, protection, flags, fd, offset));
}

void* covered_mmap(void* at, std::size_t size_bytes, int protection, int flags, int fd,
                   off_t offset) {
  if (!shim.on()) return real_mmap(at, size_bytes, protection, flags, fd, offset);
  Entry entry;
  const bool cover = coverable(size_bytes, protection, flags, fd, entry);
  // To map all of it at once is what the limit forbids.
  if (cover && size_bytes > shim.settings().limit_bytes) flags &= ~MAP_POPULATE;
  if ((flags & MAP_FIXED) != 0 && shim.covers_any()) shim.uncover(range_of(at, size_bytes));
  void* result = real_mmap(at, size_bytes, protection, flags, fd, offset);
  if (result == MAP_FAILED) return result;
  const int saved = errno;
  entry.range = range_of(result, size_bytes);
  if (cover) {
    shim.cover(entry);
  } else if (shim.covers_any()) {
    shim.uncover(entry.range);  // what was there went without the hooks
  }
  errno = saved;
  return result;
}

void* real_mremap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to) {
  if (next.mremap != nullptr) return next.mremap(at, old_bytes, new_bytes, flags, to);
  return told<void*>(bare::remap(at, old_bytes, new_bytes, flags, to));
}

void* covered_mremap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to) {
  Entry entry;
  bool covered = false;
  {
    Shim::Held held(shim);
    if (const Entry* found = held.table().at(reinterpret_cast<std::uintptr_t>(at))) {
      entry = *found;
      covered = true;
    }
    held.change([&](Table& table) {
      table.remove(range_of(at, old_bytes));
      if ((flags & MREMAP_FIXED) != 0) table.remove(range_of(to, new_bytes));
      return true;
    });
  }
  void* result = real_mremap(at, old_bytes, new_bytes, flags, to);
  const int saved = errno;
  entry.range = result == MAP_FAILED ? range_of(at, old_bytes) : range_of(result, new_bytes);
  if (covered && entry.range.bytes() != 0) {
    shim.cover(entry);
  } else if (result != MAP_FAILED) {
    shim.uncover(entry.range);
  }
  errno = saved;
  return result;
}

__attribute__((constructor)) void start() {
  next.mmap = reinterpret_cast<Mmap>(bare::next_function("mmap"));
  next.munmap = reinterpret_cast<Munmap>(bare::next_function("munmap"));
  next.mremap = reinterpret_cast<Mremap>(bare::next_function("mremap"));
  next.mprotect = reinterpret_cast<Mprotect>(bare::next_function("mprotect"));
  next.pkey_mprotect = reinterpret_cast<PkeyMprotect>(bare::next_function("pkey_mprotect"));
  shim.start(environ);
}

__attribute__((destructor)) void end() {
  shim.end();
}

}  // namespace

}  // namespace lowtide::ceiling

using namespace lowtide;
using namespace lowtide::ceiling;

LOWTIDE_HOOK void* mmap(void* at, std::size_t size_bytes, int protection, int flags, int fd,
                        off_t offset) noexcept {
  return covered_mmap(at, size_bytes, protection, flags, fd, offset);
}

LOWTIDE_HOOK void* mmap64(void* at, std::size_t size_bytes, int protection, int flags, int fd,
                          off64_t offset) noexcept {
  static_assert(sizeof(off64_t) == sizeof(off_t));
  return covered_mmap(at, size_bytes, protection, flags, fd, offset);
}

LOWTIDE_HOOK int munmap(void* at, std::size_t size_bytes) noexcept {
  if (shim.covers_any()) shim.uncover(range_of(at, size_bytes));
  if (next.munmap != nullptr) return next.munmap(at, size_bytes);
  return told<int>(bare::unmap(at, size_bytes));
}

LOWTIDE_HOOK void* mremap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags,
                          ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  if (shim.covers_any()) return covered_mremap(at, old_bytes, new_bytes, flags, to);
  return real_mremap(at, old_bytes, new_bytes, flags, to);
}

LOWTIDE_HOOK int mprotect(void* at, std::size_t size_bytes, int protection) noexcept {
  if ((protection & PROT_WRITE) != 0 && shim.covers_any()) {
    shim.make_writable(range_of(at, size_bytes));
  }
  if (next.mprotect != nullptr) return next.mprotect(at, size_bytes, protection);
  return told<int>(bare::protect(at, size_bytes, protection, -1));
}

LOWTIDE_HOOK int pkey_mprotect(void* at, std::size_t size_bytes, int protection, int key) noexcept {
  if ((protection & PROT_WRITE) != 0 && shim.covers_any()) {
    shim.make_writable(range_of(at, size_bytes));
  }
  if (next.pkey_mprotect != nullptr) return next.pkey_mprotect(at, size_bytes, protection, key);
  return told<int>(bare::protect(at, size_bytes, protection, key));
}
