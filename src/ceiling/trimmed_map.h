// trimmed_map.h - one map and what is known of its pages: how many may be entered, when it is time
// to count, and the trim itself.
//
// Between two exact counts an upper bound is kept: every window of 2 MiB that was announced since
// counts as a whole, because a touched byte enters all of a folio. Only when the bound passes the
// limit are the pages counted, and only when the count is near it is the map zapped: whole, since
// slices leave more behind than they save. Not for two threads at once: the Registry's lock guards
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ceiling/drop_behind.h"
#include "os/mapped_pages.h"

namespace lowtide {

class TrimmedMap {
 public:
  static constexpr std::uint64_t kWindowBytes = DropBehind::kWindowBytes;
  static constexpr std::uint64_t kLeastLimitBytes = 4 * kWindowBytes;

  // `drop` may be nullptr: the page cache is kept.
  TrimmedMap(void* address, std::uint64_t size_bytes, std::uint64_t file_offset_bytes,
             std::uint64_t memory_bytes, std::unique_ptr<DropBehind> drop);

  // As Ceiling has them.
  void touch(const void* at, std::uint64_t size_bytes) noexcept;
  void touch_anywhere(std::uint64_t places) noexcept;
  void lend(std::uint64_t bytes) noexcept;
  int trim() noexcept;

  // Counts, and trims what is over the limit. Another thread's last announcement stays counted:
  // what it announced it may be about to read.
  void account(PageCounter& counter) noexcept;

  // Whether all of it may be entered, so that nothing is ever to do.
  [[nodiscard]] bool fits() const { return size_bytes_ <= limit_bytes_; }
  [[nodiscard]] bool drops() const { return drop_ != nullptr; }
  [[nodiscard]] std::uint64_t limit_bytes() const { return limit_bytes_; }
  // How much more may be announced before it is time to count again.
  [[nodiscard]] std::uint64_t headroom_bytes() const {
    return bound_bytes_ < limit_bytes_ ? limit_bytes_ - bound_bytes_ : 0;
  }
  // How much more could be entered when it was last counted.
  [[nodiscard]] std::uint64_t room_bytes() const {
    return counted_bytes_ < limit_bytes_ ? limit_bytes_ - counted_bytes_ : 0;
  }
  [[nodiscard]] std::optional<std::uint64_t> entered_bytes() const noexcept;
  [[nodiscard]] std::uint64_t trims() const { return trims_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  // Windows first .. last of the map, from 0.
  [[nodiscard]] std::uint64_t mark(std::uint64_t first, std::uint64_t last) noexcept;
  void forget_windows() noexcept;
  void make_room(std::uint64_t bytes) noexcept;

  void* const address_;
  const std::uint64_t size_bytes_;
  const std::uint64_t into_window_bytes_;  // where in its first window of the file the map starts
  const std::uint64_t memory_bytes_;
  std::uint64_t limit_bytes_;  // memory_bytes_ without what is lent
  std::unique_ptr<DropBehind> drop_;
  std::vector<bool> announced_;                  // by window, since the last count
  std::uint64_t last_first_ = 0, last_end_ = 0;  // the windows of the last announcement
  std::uint64_t counted_bytes_ = 0;
  std::uint64_t bound_bytes_ = 0;  // no more than this is entered, of what was announced
  std::uint64_t trims_ = 0;
  int refused_ = 0;
};

}  // namespace lowtide
