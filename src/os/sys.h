// sys.h - every system call that can fail, in one table that tests can change.
//
// Code of this room calls sys::table.pread(...) and never ::pread(...). A test puts its own
// function into `sys::table` with sys::Fault, to give EINTR, short reads, EIO, ENOSPC or ENOSYS;
// sys::Fault restores the original.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct io_uring;
struct io_uring_params;
struct statfs;
struct statx;

namespace lowtide::sys {

// Linux 6.5; not in the headers of Debian 12.
struct CachestatRange {
  std::uint64_t offset_bytes;
  std::uint64_t size_bytes;  // 0: to the end of the file
};
struct Cachestat {
  std::uint64_t cached_pages, dirty_pages, writeback_pages, evicted_pages, recently_evicted_pages;
};

struct Table {
  int (*open)(const char* path, int flags);
  int (*create)(const char* path, int flags);  // open with O_CREAT, mode 0666 minus the umask
  int (*close)(int fd);
  ssize_t (*write)(int fd, const void* from, std::size_t size);
  ssize_t (*pwrite)(int fd, const void* from, std::size_t size, off_t offset);
  int (*sync_file_range)(int fd, off_t offset, off_t size, unsigned flags);
  int (*fsync)(int fd);
  int (*ftruncate)(int fd, off_t size);
  int (*fchmod)(int fd, mode_t mode);
  int (*fsetxattr)(int fd, const char* name, const void* from, std::size_t size, int flags);
  ssize_t (*getxattr)(const char* path, const char* name, void* into, std::size_t size);
  int (*flock)(int fd, int operation);
  // Of this open file, on one byte: F_WRLCK or F_UNLCK. Never waits.
  int (*lock_byte)(int fd, off_t offset, int kind);
  int (*unlink)(const char* path);
  int (*link)(const char* from, const char* to);
  int (*rename)(const char* from, const char* to);
  int (*rename_how)(const char* from, const char* to, unsigned flags);  // renameat2
  int (*mkdir)(const char* path);                                       // mode 0777 minus the umask
  int (*rmdir)(const char* path);
  ssize_t (*pread)(int fd, void* into, std::size_t size, off_t offset);
  ssize_t (*pread_now)(int fd, void* into, std::size_t size, off_t offset);  // RWF_NOWAIT
  int (*statx)(int dirfd, const char* path, int flags, unsigned mask, struct statx* out);
  int (*fstatfs)(int fd, struct statfs* out);
  int (*fadvise)(int fd, off_t offset, off_t size,
                 int advice);  // returns -1 and errno, unlike libc
  int (*cachestat)(int fd, const CachestatRange* range, Cachestat* out);
  int (*fdatasync)(int fd);
  void* (*mmap)(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);
  int (*madvise)(void* address, std::size_t size, int advice);
  int (*ioctl)(int fd, unsigned long request, void* argument);
  int (*ring_init)(unsigned entries, struct io_uring* ring);  // 0 or -errno, as in liburing
  int (*ring_submit_and_wait)(struct io_uring* ring, unsigned count);  // likewise
  int (*ring_hold)(struct io_uring* ring, int fd);                     // likewise
  int (*ring_result)(int result);  // of a finished read: bytes or -errno, from the kernel
  void* (*dlopen)(const char* name, int flags);
  void* (*dlsym)(void* library, const char* name);
};

extern Table table;  // the real calls, except those that a test has replaced

// The initial values of three entries: from ring.cc, or -ENOSYS from ring_absent.cc.
int real_ring_init(unsigned entries, struct io_uring* ring);
int real_ring_submit_and_wait(struct io_uring* ring, unsigned count);
int real_ring_hold(struct io_uring* ring, int fd);

// Replaces one entry of the table during its lifetime. For tests only.
template <typename Function>
class Fault {
 public:
  Fault(Function& entry, Function replacement) : entry_(entry), real_(entry) {
    entry = replacement;
  }
  ~Fault() { entry_ = real_; }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  [[nodiscard]] Function real() const { return real_; }

 private:
  Function& entry_;
  Function real_;
};

}  // namespace lowtide::sys
