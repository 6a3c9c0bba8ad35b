// file.h - one file, open for reading: a buffered descriptor and, on demand, an O_DIRECT twin.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/extent.h"
#include "core/mutex.h"

namespace lowtide {

// What O_DIRECT requires of a read from this file. Both are powers of two.
struct DirectAlignment {
  std::uint32_t memory_bytes = 4096;
  std::uint32_t offset_bytes = 4096;  // of file offset and length
};

// The outcome of a read that must not throw.
struct ReadResult {
  std::uint64_t placed_bytes = 0;
  int err = 0;  // 0 with fewer placed_bytes than requested: the file ended
};

enum class Advice { normal, random, will_need, dont_need };

// Owns its descriptors (-1: none). Any thread may read.
class File {
 public:
  // Opens a regular file. Folders, FIFOs, sockets and devices are refused at once, without blocking
  // on a FIFO: IoError with EISDIR, or with EINVAL and the kind of file. Throws IoError with any
  // error of open.
  explicit File(const std::string& path);
  // The same file again, by path. Throws IoError(ESTALE) if it is no longer the `expected` one.
  explicit File(const Shard& expected);
  ~File();
  // This open file with a description of its own (through /proc/self/fd): threads that share one
  // pay for its reference count with every read. nullptr if that is not possible.
  [[nodiscard]] std::shared_ptr<File> again() const;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] const Shard& shard() const { return shard_; }  // as it was when opened
  [[nodiscard]] int fd() const { return fd_; }

  // The O_DIRECT descriptor, opened on first use: through /proc/self/fd, so that it is the same
  // inode even after a rename; without /proc, by path and a check of the inode. -1 if the file
  // system refuses it.
  [[nodiscard]] int direct_fd() const;
  // From STATX_DIOALIGN; 4096 / 4096 if the kernel does not report it; nullopt if it reports that
  // direct I/O is not supported for this file.
  [[nodiscard]] std::optional<DirectAlignment> direct_alignment() const {
    return direct_alignment_;
  }

  // Whether cached bytes can be read without waiting for uncached ones. On file systems without
  // such reads (tmpfs, overlayfs), io_uring hands each read to another thread.
  [[nodiscard]] bool answers_at_once() const noexcept;

  // The current size and version, from the open descriptor. Throws IoError.
  [[nodiscard]] Shard stat_now() const;

  // Fills all of `out` from `offset_bytes`. Retries EINTR and short reads. A file that ends early
  // is a FormatError that names path, offset, expected and found bytes.
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const;
  // The same without throwing: buffered, or through the twin. The twin requires aligned offset,
  // size and address, and a read that reaches the end of the file is short.
  [[nodiscard]] ReadResult read(std::uint64_t offset_bytes,
                                std::span<std::byte> out) const noexcept;
  [[nodiscard]] ReadResult read_direct(std::uint64_t offset_bytes,
                                       std::span<std::byte> out) const noexcept;

  // posix_fadvise on the buffered descriptor; size 0 means up to the end. Returns 0 or an errno.
  int advise(Advice advice, std::uint64_t offset_bytes = 0,
             std::uint64_t size_bytes = 0) const noexcept;

 private:
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };
  File(const File& original, int fd);
  void open_buffered();
  [[nodiscard]] int open_direct() const;

  Shard shard_;
  Identity identity_;
  std::optional<DirectAlignment> direct_alignment_;
  int fd_ = -1;
  mutable Mutex direct_mutex_;          // held while direct_fd_ is opened
  mutable std::atomic<int> direct_fd_;  // the descriptor, -1, or not requested yet
};

}  // namespace lowtide
