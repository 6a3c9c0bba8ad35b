// table.h - the mappings under the limit: a table of fixed size, sorted by address.
//
// Plain data without a lock of its own: its users hold the shim's lock. Entries never overlap.
// Nothing allocates; if the table is full, a map is left out and reported.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/bare.h"

namespace lowtide::ceiling {

enum class Kind : std::uint8_t {
  shared,         // pages can be released at any time: writes are in the page cache
  private_clean,  // never writable since it was mapped: nothing can be lost
  private_dirty,  // may hold written copies: only the kernel's reclaim may take its pages
};

struct Entry {
  bare::Range range;
  std::uint64_t inode = 0;
  std::uint64_t stat_device = 0;  // as reported by stat
  std::uint64_t device = 0;       // as in the kernel's list of maps, once `known`
  bool known = false;             // the trimmer has seen it in the kernel's list of maps
  bool aside = false;             // a call in progress may unmap it: must not be trimmed
  Kind kind = Kind::shared;
};

class Table {
 public:
  static constexpr std::size_t kEntries = 4096;

  [[nodiscard]] bool insert(const Entry& entry);  // false: full. Replaces overlapped entries
  // Cuts [start, end) out of every entry; an entry may be split. A part that does not fit into the
  // table is left out and counted in `lost`.
  void remove(bare::Range range);
  // Call before a system call that may unmap the range and may fail. Entries in the range are set
  // aside, and no trim touches them until they are put back (the call failed) or dropped (it
  // succeeded). A new map that takes their place in the meantime stays. False: there are none.
  // Entries are split at the ends of the range; if the table is full, an entry is set aside whole.
  [[nodiscard]] bool set_aside(bare::Range range);
  void put_back(bare::Range range);
  void drop_aside(bare::Range range);
  // The entry that contains `address`; null if there is none.
  [[nodiscard]] const Entry* at(std::uintptr_t address) const;
  // From now on, private entries that overlap the range count as written.
  void make_writable(bare::Range range);

  // The index of the first entry that ends after `address`; size() if there is none.
  [[nodiscard]] std::size_t first_after(std::uintptr_t address) const;
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Entry& operator[](std::size_t index) { return entries_[index]; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  void clear() { size_ = 0; }

 private:
  void split(std::uintptr_t address);
  void open_gap(std::size_t index);
  void close_gap(std::size_t index, std::size_t count);

  std::size_t size_ = 0;
  std::uint64_t lost_ = 0;
  Entry entries_[kEntries];
};

}  // namespace lowtide::ceiling
