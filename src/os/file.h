// file.h - one file, open for reading: a buffered descriptor and, on demand, an O_DIRECT twin.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "core/extent.h"

namespace lowtide {

// What O_DIRECT asks of a read on this file. Both are powers of two.
struct DirectAlignment {
  std::uint32_t memory_bytes = 4096;
  std::uint32_t offset_bytes = 4096;  // of file offset and length
};

// What became of a read that may not throw.
struct ReadResult {
  std::uint64_t placed_bytes = 0;
  int err = 0;  // 0 with placed_bytes short of what was asked: the file ended
};

enum class Advice { normal, random, will_need, dont_need };

// Owns its descriptors (-1: none). Any thread may read.
class File {
 public:
  // Opens a regular file. Directories, FIFOs, sockets and devices are refused at once (never blocks
  // on a FIFO): IoError with EISDIR, or EINVAL and what it is. Throws IoError for whatever open
  // gives.
  explicit File(const std::string& path);
  // The same file again, by path: throws IoError(ESTALE) when it is no longer the `expected` one.
  explicit File(const Shard& expected);
  ~File();
  // This open file with a description of its own (through /proc/self/fd): threads that share one
  // pay for its reference count with every read. nullptr where it cannot be had.
  [[nodiscard]] std::shared_ptr<File> again() const;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] const Shard& shard() const { return shard_; }  // as it was when opened
  [[nodiscard]] int fd() const { return fd_; }

  // The O_DIRECT descriptor, opened when first asked for (through /proc/self/fd, so that it is the
  // same inode even after a rename; by path and inode check where /proc is not there); -1 where the
  // file system refuses it.
  [[nodiscard]] int direct_fd() const;
  // From STATX_DIOALIGN; 4096 / 4096 where the kernel does not tell; nullopt where it says that
  // direct I/O is not supported on this file.
  [[nodiscard]] std::optional<DirectAlignment> direct_alignment() const {
    return direct_alignment_;
  }

  // Whether cached bytes can be asked for without waiting for those that are not. File systems that
  // have no such reads (tmpfs, overlayfs) make io_uring hand each of them to another thread.
  [[nodiscard]] bool answers_at_once() const noexcept;

  // Size and version as they are now, from the open descriptor. Throws IoError.
  [[nodiscard]] Shard stat_now() const;

  // Fills all of `out` from `offset_bytes`: EINTR and short reads are looped over; a file that ends
  // early is a FormatError that names path, offset, expected and found.
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const;
  // The same without throwing; buffered, or through the twin (then offset, size and address must be
  // aligned and a read that meets the end of the file is short).
  [[nodiscard]] ReadResult read(std::uint64_t offset_bytes,
                                std::span<std::byte> out) const noexcept;
  [[nodiscard]] ReadResult read_direct(std::uint64_t offset_bytes,
                                       std::span<std::byte> out) const noexcept;

  // posix_fadvise on the buffered descriptor; size 0 means to the end. Returns 0 or an errno.
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
  mutable std::mutex direct_mutex_;
  mutable std::atomic<int> direct_fd_;  // the descriptor, -1, or not asked for yet
};

}  // namespace lowtide
