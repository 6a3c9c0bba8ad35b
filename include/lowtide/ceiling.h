// ceiling.h - a soft limit on the pages of a mapped file that are entered in this process.
//
//   lowtide::Ceiling ceiling(address, size_bytes, {.memory_bytes = 256 << 20});
//   ceiling.touch(address + offset, bytes);   // before you read a part of the map
//   ceiling.close();                          // before munmap: always
//
// Pages of a shared file map can be given back at any time: what was written stays in the page
// cache, and the next touch enters them again. Parts that are announced by `touch` are trimmed on
// the calling thread and stay within the limit; what is read unannounced is trimmed by one thread a
// process and may pass it for a moment. A file that is truncated while it is mapped still kills the
// process (SIGBUS): nothing here can prevent that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lowtide/error.h"

namespace lowtide {

struct CeilingOptions {
  // 0: 256 MiB, or an eighth of the memory that this process may use if that is less. Below 8 MiB
  // counts as 8 MiB: one touched byte can enter 2 MiB.
  std::uint64_t memory_bytes = 0;
  std::uint64_t file_offset_bytes = 0;  // of the map's first byte
  // The mapped file, where its page cache is to be dropped with every trim; empty: it is kept. What
  // was cached before the Ceiling was made stays, where the kernel tells what that is (cachestat).
  std::string drop_path = {};
};

struct CeilingStats {
  std::uint64_t memory_bytes = 0;                             // the limit in force
  std::optional<std::uint64_t> entered_bytes = std::nullopt;  // pages in this process; now, exactly
  std::uint64_t trims = 0;
  int refused =
      0;  // errno of the last trim that the kernel refused (EINVAL: locked pages); 0: none
};

// One map under its limit. Whoever owns the map owns this and closes it before the map goes: a trim
// of an address that is no longer this map would zero whatever lies there. Any thread.
class Ceiling {
 public:
  class Impl;

  // The map is shared and stays where it is until close(). `address` is where mmap put it. Throws
  // IoError where drop_path cannot be opened, std::system_error where no thread can be had.
  Ceiling(void* address, std::uint64_t size_bytes, const CeilingOptions& options = {});
  ~Ceiling();
  Ceiling(const Ceiling&) = delete;
  Ceiling& operator=(const Ceiling&) = delete;

  // Gives the map up: a trim in progress is over when this returns, and no other comes.
  void close() noexcept;

  // This part is about to be read or written. Trims first where it would pass the limit. A part
  // larger than the limit is left to the thread.
  void touch(const void* at, std::uint64_t size_bytes) noexcept;
  // The same for this many places that are not known.
  void touch_anywhere(std::uint64_t places) noexcept;

  // Counts this much of the limit, instead of what was lent before, as used elsewhere: by buffers
  // that serve the same file.
  void lend(std::uint64_t bytes) noexcept;

  // Gives all pages back now. Returns 0 or an errno.
  int trim() noexcept;

  // False for a map that is no larger than its limit: it is never trimmed by itself, and telling
  // what is touched is not needed.
  [[nodiscard]] bool limited() const noexcept;
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept;

  [[nodiscard]] CeilingStats stats() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Gives back all pages of a map that need not have a Ceiling, and tells how many bytes left this
// process; with `leave_dumps` it also leaves core dumps (MADV_DONTDUMP, which frees nothing).
// Nobody may unmap it meanwhile. Throws std::invalid_argument for a private map that is writable or
// was written to, which would lose the writes, and IoError where the kernel refuses (EINVAL: locked
// pages) or /proc cannot be read; `path` is for these messages.
std::uint64_t release_map(void* address, std::uint64_t size_bytes, bool leave_dumps,
                          const std::string& path);

// Ends the thread, for a program that ends. A new Ceiling starts it again.
void stop_trimming() noexcept;
// Starts it where there is something to trim: after stop_trimming, and in the child of a fork,
// where the first touch does it too.
void resume_trimming() noexcept;

}  // namespace lowtide
