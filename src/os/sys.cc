#include "os/sys.h"

#include <dlfcn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace lowtide::sys {
namespace {

constexpr long kCachestatNumber = 451;  // the same on every architecture, like all calls since 424

int real_open(const char* path, int flags) {
  return ::open(path, flags);
}

int real_create(const char* path, int flags) {
  return ::open(path, flags | O_CREAT, 0666);
}

// Skips the cancellation point of libc's wrapper, which adds a few percent to a cached read.
ssize_t real_pread(int fd, void* into, std::size_t size, off_t offset) {
  static_assert(sizeof(off_t) == sizeof(long), "the offset is one argument of the call");
  return ::syscall(SYS_pread64, fd, into, size, offset);
}

ssize_t real_pread_now(int fd, void* into, std::size_t size, off_t offset) {
  const struct iovec place {
    into, size
  };
#ifdef __GLIBC__
  return ::preadv2(fd, &place, 1, offset, RWF_NOWAIT);
#else  // musl has it since 1.2.5, and a library that names it cannot be loaded by an older one
  return ::syscall(SYS_preadv2, fd, &place, 1L, offset, 0L, RWF_NOWAIT);
#endif
}

int real_rename_how(const char* from, const char* to, unsigned flags) {
  // Not ::renameat2: musl has it since 1.2.5 only.
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}

int real_mkdir(const char* path) {
  return ::mkdir(path, 0777);
}

int real_sync_file_range(int fd, off_t offset, off_t size, unsigned flags) {
  return ::sync_file_range(fd, offset, size, flags);
}

int real_lock_byte(int fd, off_t offset, int kind) {
  struct flock lock {};
  lock.l_type = static_cast<short>(kind);
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock);
}

int real_fadvise(int fd, off_t offset, off_t size, int advice) {
  const int err = ::posix_fadvise(fd, offset, size, advice);
  if (err == 0) return 0;
  errno = err;
  return -1;
}

int real_cachestat(int fd, const CachestatRange* range, Cachestat* out) {
  return static_cast<int>(::syscall(kCachestatNumber, fd, range, out, 0));
}

int real_ioctl(int fd, unsigned long request, void* argument) {
  // Not ::ioctl: the request is an int to some C libraries.
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

int real_statx(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) {
#ifdef __GLIBC__  // which has a substitute for kernels without it
  return ::statx(dirfd, path, flags, mask, out);
#else
  return static_cast<int>(::syscall(SYS_statx, dirfd, path, flags, mask, out));
#endif
}

int real_ring_result(int result) {
  return result;
}

}  // namespace

constinit Table table{
    .open = real_open,
    .create = real_create,
    .close = ::close,
    .write = ::write,
    .pwrite = ::pwrite,
    .sync_file_range = real_sync_file_range,
    .fsync = ::fsync,
    .ftruncate = ::ftruncate,
    .fchmod = ::fchmod,
    .fsetxattr = ::fsetxattr,
    .getxattr = ::getxattr,
    .flock = ::flock,
    .lock_byte = real_lock_byte,
    .unlink = ::unlink,
    .link = ::link,
    .rename = ::rename,
    .rename_how = real_rename_how,
    .mkdir = real_mkdir,
    .rmdir = ::rmdir,
    .pread = real_pread,
    .pread_now = real_pread_now,
    .statx = real_statx,
    .fstatfs = ::fstatfs,
    .fadvise = real_fadvise,
    .cachestat = real_cachestat,
    .fdatasync = ::fdatasync,
    .mmap = ::mmap,
    .madvise = ::madvise,
    .ioctl = real_ioctl,
    .ring_init = real_ring_init,
    .ring_submit_and_wait = real_ring_submit_and_wait,
    .ring_hold = real_ring_hold,
    .ring_result = real_ring_result,
    .dlopen = ::dlopen,
    .dlsym = ::dlsym,
};

}  // namespace lowtide::sys
