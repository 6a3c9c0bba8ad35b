// table.h - the mappings under the ceiling: a table of fixed size, by address.
//
// Plain data with no lock of its own: whoever uses it holds the shim's lock. Entries never overlap.
// Nothing allocates; a full table leaves a map out and says so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/bare.h"

namespace lowtide::ceiling {

enum class Kind : std::uint8_t {
  shared,         // pages can be let go at any time: writes are in the page cache
  private_clean,  // never writable since it was mapped: nothing of it can be lost
  private_dirty,  // may hold copies that were written: only the kernel may take its pages
};

struct Entry {
  bare::Range range;
  std::uint64_t inode = 0;
  std::uint64_t stat_device = 0;  // as stat tells it
  std::uint64_t device = 0;       // as the kernel's maps tell it, once `known`
  bool known = false;             // the trimmer has seen it in the kernel's maps
  bool aside = false;             // a call is under way that may take it away: not to be trimmed
  Kind kind = Kind::shared;
};

class Table {
 public:
  static constexpr std::size_t kEntries = 4096;

  [[nodiscard]] bool insert(const Entry& entry);  // false: full. Overlapped entries are replaced
  // Takes [start, end) out of every entry; an entry may be split. A part for which there is no room
  // is left out, and counted in `lost`.
  void remove(bare::Range range);
  // Before a call that may fail takes the range away: what lies in it is set aside, and no trim
  // touches it until it is put back as it was (the call failed) or dropped (it did not). A map that
  // came to the same place meanwhile stays. False: nothing lies there. Entries are split at the
  // ends; one for which there is no room to be split is set aside whole.
  [[nodiscard]] bool set_aside(bare::Range range);
  void put_back(bare::Range range);
  void drop_aside(bare::Range range);
  // The entry that holds `address`; null when there is none.
  [[nodiscard]] const Entry* at(std::uintptr_t address) const;
  // From now on the private entries that touch the range count as written.
  void make_writable(bare::Range range);

  // The index of the first entry that ends after `address`; size() when there is none.
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
