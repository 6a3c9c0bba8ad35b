// The functions of libc that the shim replaces. Each one calls the next library's function and also
// updates the table. None allocates, and errno is that of the real call.
#include "ceiling/shim/hooks.h"

#include <cstdarg>

#include "ceiling/shim/shim.h"
#include "os/bare.h"

extern "C" char** environ;

namespace lowtide::ceiling {

namespace {

constexpr std::uint64_t kSmallestBytes = 1 << 20;  // smaller files are not worth an entry

using Mmap = void* (*)(void*, std::size_t, int, int, int, off_t);
using Munmap = int (*)(void*, std::size_t);
using Mremap = void* (*)(void*, std::size_t, std::size_t, int, ...);
using Mprotect = int (*)(void*, std::size_t, int);
using PkeyMprotect = int (*)(void*, std::size_t, int, int);

// Null until our constructor has run: constructors of other libraries may map files before it.
struct Next {
  Mmap mmap;
  Munmap munmap;
  Mremap mremap;
  Mprotect mprotect;
  PkeyMprotect pkey_mprotect;
};
constinit Next next{};

// Widened to whole pages, as the kernel does, and cut at the end of the address space.
bare::Range range_of(const void* at, std::size_t size_bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t rest = bare::page_bytes() - 1;
  const std::uintptr_t most = ~rest - start;
  return {start & ~rest, size_bytes > most ? ~rest : (start + size_bytes + rest) & ~rest};
}

// Executable maps are left alone, because a program needs its code again at once. So are files on
// tmpfs, whose pages cannot be released.
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
  // Populating it would map more than the limit in one call.
  if (cover && size_bytes > shim.settings().limit_bytes) flags &= ~MAP_POPULATE;
  // A fixed map replaces what is there. The old entry must be out of reach before the call: a trim
  // right after it would discard pages of the new map, whatever that is.
  const bool aside =
      (flags & MAP_FIXED) != 0 && shim.covers_any() && shim.set_aside(range_of(at, size_bytes));
  void* result = real_mmap(at, size_bytes, protection, flags, fd, offset);
  if (result == MAP_FAILED) {
    if (aside) shim.put_back(range_of(at, size_bytes));
    return result;
  }
  const int saved = errno;
  entry.range = range_of(result, size_bytes);
  if (cover) {
    shim.cover(entry);
  } else if (shim.covers_any()) {
    shim.uncover(entry.range);  // whatever the table still has there is gone
  }
  errno = saved;
  return result;
}

void* real_mremap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to) {
  if (next.mremap != nullptr) return next.mremap(at, old_bytes, new_bytes, flags, to);
  return told<void*>(bare::remap(at, old_bytes, new_bytes, flags, to));
}

// The entry at the start of the range. One entry will cover all of the range once it has moved, so
// it gets the strictest kind of all entries in it.
bool covered_at(bare::Range range, Entry& out) {
  Shim::Held held(shim);
  const Entry* const found = held ? held.table().at(range.start) : nullptr;
  if (found == nullptr) return false;
  out = *found;
  for (std::size_t i = held.table().first_after(range.start);
       i < held.table().size() && held.table()[i].range.start < range.end; ++i) {
    if (held.table()[i].kind == Kind::private_dirty) out.kind = Kind::private_dirty;
  }
  return true;
}

void* covered_mremap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to) {
  constexpr int kDontUnmap = 4;  // MREMAP_DONTUNMAP
  const bare::Range from = range_of(at, old_bytes);
  const bare::Range onto = (flags & MREMAP_FIXED) != 0 ? range_of(to, new_bytes) : bare::Range{};
  Entry entry;
  const bool covered = covered_at(from, entry);
  const bool from_aside = shim.set_aside(from);
  const bool onto_aside = onto.bytes() != 0 && shim.set_aside(onto);
  void* result = real_mremap(at, old_bytes, new_bytes, flags, to);
  const int saved = errno;
  const bool failed = result == MAP_FAILED;
  // MREMAP_DONTUNMAP leaves an empty map of the same file at the old address.
  if (from_aside && (failed || (flags & kDontUnmap) != 0)) {
    shim.put_back(from);
  } else if (from_aside) {
    shim.drop_aside(from);
  }
  if (onto_aside && failed) shim.put_back(onto);
  if (!failed && covered) {
    entry.range = range_of(result, new_bytes);
    entry.aside = false;
    shim.cover(entry);
  } else if (!failed) {
    shim.uncover(range_of(result, new_bytes));
  }
  errno = saved;
  return result;
}

int real_munmap(void* at, std::size_t size_bytes) {
  if (next.munmap != nullptr) return next.munmap(at, size_bytes);
  return told<int>(bare::unmap(at, size_bytes));
}

// Set aside before the call, because another thread may get the addresses for a new map as soon as
// the kernel has freed them.
int covered_munmap(void* at, std::size_t size_bytes) {
  const bare::Range range = range_of(at, size_bytes);
  const bool aside = shim.set_aside(range);
  const int result = real_munmap(at, size_bytes);
  if (aside && result == 0) shim.drop_aside(range);
  if (aside && result != 0) shim.put_back(range);
  return result;
}

__attribute__((constructor)) void start() {
  next.mmap = reinterpret_cast<Mmap>(bare::next_function("mmap"));
  next.munmap = reinterpret_cast<Munmap>(bare::next_function("munmap"));
  next.mremap = reinterpret_cast<Mremap>(bare::next_function("mremap"));
  next.mprotect = reinterpret_cast<Mprotect>(bare::next_function("mprotect"));
  next.pkey_mprotect = reinterpret_cast<PkeyMprotect>(bare::next_function("pkey_mprotect"));
  find_next_calls();
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
                        off_t offset) LOWTIDE_NOTHROW {
  return covered_mmap(at, size_bytes, protection, flags, fd, offset);
}

LOWTIDE_HOOK void* mmap64(void* at, std::size_t size_bytes, int protection, int flags, int fd,
                          off_t offset) LOWTIDE_NOTHROW {
  static_assert(sizeof(off_t) == sizeof(std::int64_t));
  return covered_mmap(at, size_bytes, protection, flags, fd, offset);
}

LOWTIDE_HOOK int munmap(void* at, std::size_t size_bytes) LOWTIDE_NOTHROW {
  return shim.covers_any() ? covered_munmap(at, size_bytes) : real_munmap(at, size_bytes);
}

LOWTIDE_HOOK void* mremap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags,
                          ...) LOWTIDE_NOTHROW {
  va_list more;
  va_start(more, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  if (shim.covers_any()) return covered_mremap(at, old_bytes, new_bytes, flags, to);
  return real_mremap(at, old_bytes, new_bytes, flags, to);
}

// Marked before the call: a trim that still takes the map for clean would discard a write that
// follows right after it. If the call fails, the mark stays: pages of such a map are merely harder
// to release.
LOWTIDE_HOOK int mprotect(void* at, std::size_t size_bytes, int protection) LOWTIDE_NOTHROW {
  if ((protection & PROT_WRITE) != 0 && shim.covers_any()) {
    shim.make_writable(range_of(at, size_bytes));
  }
  if (next.mprotect != nullptr) return next.mprotect(at, size_bytes, protection);
  return told<int>(bare::protect(at, size_bytes, protection, -1));
}

LOWTIDE_HOOK int pkey_mprotect(void* at, std::size_t size_bytes, int protection,
                               int key) LOWTIDE_NOTHROW {
  if ((protection & PROT_WRITE) != 0 && shim.covers_any()) {
    shim.make_writable(range_of(at, size_bytes));
  }
  if (next.pkey_mprotect != nullptr) return next.pkey_mprotect(at, size_bytes, protection, key);
  return told<int>(bare::protect(at, size_bytes, protection, key));
}
