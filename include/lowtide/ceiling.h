// ceiling.h - a soft limit on the resident pages of a mapped file in this process.
//
//   lowtide::Ceiling ceiling(address, size_bytes, {.memory_bytes = 256 << 20});
//   ceiling.touch(address + offset, bytes);   // before you read a part of the map
//   ceiling.close();                          // before munmap: always
//
// Pages of a shared file map can be released at any time: written data stays in the page cache, and
// the next access maps the page again. Accesses that are announced with `touch` are trimmed on the
// calling thread and stay within the limit. Unannounced accesses are trimmed by one thread per
// process and may briefly exceed it. A file that is truncated while it is mapped still kills the
// process (SIGBUS); nothing here can prevent that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lowtide/error.h"

namespace lowtide {

struct CeilingOptions {
  // The limit in bytes. 0: 256 MiB, or an eighth of the memory that this process may use if that is
  // less. Values below 8 MiB count as 8 MiB, because one touched byte can map 2 MiB.
  std::uint64_t memory_bytes = 0;
  std::uint64_t file_offset_bytes = 0;  // of the map's first byte
  // The mapped file, if each trim should also drop it from the page cache; empty: the cache is
  // kept. Pages that were cached before the Ceiling was made stay, if the kernel can report them
  // (cachestat).
  std::string drop_path = {};
};

struct CeilingStats {
  std::uint64_t memory_bytes = 0;                             // the limit in force
  std::optional<std::uint64_t> entered_bytes = std::nullopt;  // resident now, exactly
  std::uint64_t trims = 0;
  // The errno of the last trim that the kernel refused (EINVAL: locked pages); 0: none.
  int refused = 0;
};

// One map under its limit. The owner of the map owns the Ceiling too and must close it before the
// map is unmapped: a trim of an address that is no longer this map would zero whatever is there
// now. Any thread may call any member.
class Ceiling {
 public:
  class Impl;

  // `address` is what mmap returned. The map must be shared and must stay where it is until
  // close(). Throws IoError if drop_path cannot be opened or no thread can be started.
  Ceiling(void* address, std::uint64_t size_bytes, const CeilingOptions& options = {});
  ~Ceiling();
  Ceiling(const Ceiling&) = delete;
  Ceiling& operator=(const Ceiling&) = delete;

  // Stops watching the map. When it returns, a trim in progress has ended and none will follow.
  void close() noexcept;

  // Announces that this part is about to be read or written, and trims first if that would exceed
  // the limit. A part larger than the limit is left to the trimming thread.
  void touch(const void* at, std::uint64_t size_bytes) noexcept;
  // The same for this many accesses at unknown addresses.
  void touch_anywhere(std::uint64_t touches) noexcept;

  // Counts this many bytes of the limit as used by other buffers of the same file. Replaces the
  // value of the previous call.
  void lend(std::uint64_t bytes) noexcept;

  // Releases all pages now. Returns 0 or an errno.
  int trim() noexcept;

  // False for a map that is no larger than its limit: it is never trimmed on its own, and touch()
  // is not needed.
  [[nodiscard]] bool limited() const noexcept;
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept;

  [[nodiscard]] CeilingStats stats() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Releases all pages of a map, with or without a Ceiling, and returns how many bytes left this
// process. With `leave_dumps` the map is also excluded from core dumps (MADV_DONTDUMP, which frees
// nothing). The map must not be unmapped during the call. Throws std::invalid_argument for a
// private map that is writable or was written to, because the writes would be lost, and IoError if
// the kernel refuses (EINVAL: locked pages) or /proc cannot be read. `path` is for these messages.
std::uint64_t release_map(void* address, std::uint64_t size_bytes, bool leave_dumps,
                          const std::string& path);

// Ends the trimming thread, for a program that is about to exit. A new Ceiling starts it again.
void stop_trimming() noexcept;
// Starts the trimming thread if there is something to trim: after stop_trimming, or in the child of
// a fork, where the first touch starts it too.
void resume_trimming() noexcept;

}  // namespace lowtide
