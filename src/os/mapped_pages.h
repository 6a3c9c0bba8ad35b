// mapped_pages.h - the pages of files that are entered in this process: counted, and given back.
//
// RssFile of the whole process is cheap to ask and a little behind; the pages of one map are exact
// and cost about a millisecond a GiB that is entered. mincore(2) is neither: it tells what the page
// cache has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace lowtide {

// File and shared-memory pages of this process, in bytes (/proc/self/statm); nullopt where /proc
// does not tell. Some microseconds; allocates nothing.
[[nodiscard]] std::optional<std::uint64_t> resident_file_bytes() noexcept;

// Counts the pages of maps; one is opened for a set of questions, since it belongs to the process
// that opened it. Not for two threads at once.
class PageCounter {
 public:
  PageCounter() noexcept;
  ~PageCounter();
  PageCounter(const PageCounter&) = delete;
  PageCounter& operator=(const PageCounter&) = delete;

  [[nodiscard]] int err() const { return err_; }  // why it cannot count; 0 where it can

  // Bytes of the range, widened to pages, that are entered now: with PAGEMAP_SCAN (Linux 6.7), else
  // page by page. nullopt where /proc/self/pagemap cannot be read.
  [[nodiscard]] std::optional<std::uint64_t> entered_bytes(const void* address,
                                                           std::uint64_t size_bytes) noexcept;
  // Bytes of pages of a private map that were copied by writes, in memory or in the swap; of others
  // 0. Page by page.
  [[nodiscard]] std::optional<std::uint64_t> copied_bytes(const void* address,
                                                          std::uint64_t size_bytes) noexcept;

 private:
  [[nodiscard]] std::optional<std::uint64_t> scan(std::uint64_t start, std::uint64_t end) noexcept;
  [[nodiscard]] std::optional<std::uint64_t> walk(std::uint64_t start, std::uint64_t end,
                                                  bool (*counts)(std::uint64_t entry)) noexcept;

  int fd_ = -1;
  int err_ = 0;
  bool has_scan_ = true;
};

// MADV_DONTNEED: the pages leave this process and stay in the page cache, what was written too. Of
// a private map it would lose what was written: see may_lose_writes. Returns 0 or an errno (EINVAL:
// some are locked).
int give_back_pages(void* address, std::uint64_t size_bytes) noexcept;
// MADV_DONTDUMP: the range is left out of core dumps, and nothing else. Returns 0 or an errno.
int leave_out_of_dumps(void* address, std::uint64_t size_bytes) noexcept;

// Whether a part of the range is mapped private, and is writable or has pages that were written by
// whatever way; nullopt where /proc/self/maps or pagemap cannot be read.
[[nodiscard]] std::optional<bool> may_lose_writes(const void* address, std::uint64_t size_bytes);

}  // namespace lowtide
