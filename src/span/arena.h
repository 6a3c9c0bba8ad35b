// arena.h - bounce buffers of many sizes from one block of memory.
//
// Direct reads need aligned targets and merged reads need room for the gaps, so bytes arrive here
// first. Allocations are whole 4 KiB pages, found next-fit: reads finish in about the order in
// which they were issued, so the page after the last allocation is nearly always free. Not
// thread-safe; one lane owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "os/memory.h"

namespace lowtide {

class Arena {
 public:
  static constexpr std::size_t kPageBytes = 4096;

  explicit Arena(std::size_t size_bytes);

  // nullptr if no run of free pages is long enough now. Requires size_bytes > 0.
  [[nodiscard]] std::byte* allocate(std::size_t size_bytes);
  void free(std::byte* at, std::size_t size_bytes);

 private:
  [[nodiscard]] bool run_is_free(std::size_t first, std::size_t pages,
                                 std::size_t* blocked_at) const;

  Memory memory_;
  std::vector<char> used_;  // by page
  std::size_t next_ = 0;    // where the search starts
};

}  // namespace lowtide
