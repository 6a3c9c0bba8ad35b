// mapped_pages.h - counts and releases the file pages that are mapped into this process.
//
// RssFile of the whole process is cheap to read but lags a little. The pages of one map are exact
// and cost about a millisecond per resident GiB. mincore(2) gives neither: it reports what is in
// the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace lowtide {

// File and shared-memory pages of this process, in bytes (/proc/self/statm); nullopt if /proc does
// not report them. Takes some microseconds and allocates nothing.
[[nodiscard]] std::optional<std::uint64_t> resident_file_bytes() noexcept;

// Counts the pages of maps. Open one per series of questions, since it belongs to the process that
// opened it. Use it from one thread at a time.
class PageCounter {
 public:
  PageCounter() noexcept;
  ~PageCounter();
  PageCounter(const PageCounter&) = delete;
  PageCounter& operator=(const PageCounter&) = delete;

  [[nodiscard]] int err() const { return err_; }  // why it cannot count; 0 if it can

  // Bytes of the range, widened to pages, that are currently resident: with PAGEMAP_SCAN
  // (Linux 6.7), otherwise page by page. nullopt if /proc/self/pagemap cannot be read.
  [[nodiscard]] std::optional<std::uint64_t> entered_bytes(const void* address,
                                                           std::uint64_t size_bytes) noexcept;
  // Bytes of pages of a private map that were copied by writes, in memory or in swap; 0 for other
  // maps. Goes page by page.
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

// MADV_DONTNEED: the pages leave this process and stay in the page cache, including written data.
// In a private map, written data would be lost: see may_lose_writes. Returns 0 or an errno (EINVAL:
// some pages are locked).
int give_back_pages(void* address, std::uint64_t size_bytes) noexcept;
// MADV_DONTDUMP: excludes the range from core dumps and does nothing else. Returns 0 or an errno.
int leave_out_of_dumps(void* address, std::uint64_t size_bytes) noexcept;

// Whether any part of the range is mapped private and is writable or has pages that were written in
// any way; nullopt if /proc/self/maps or pagemap cannot be read.
[[nodiscard]] std::optional<bool> may_lose_writes(const void* address, std::uint64_t size_bytes);

}  // namespace lowtide
