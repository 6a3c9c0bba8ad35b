// A sorted array of fixed size with binary search: hooks run inside any program, at any time, so
// nothing may allocate.
#include "ceiling/shim/table.h"

namespace lowtide::ceiling {

// Searches by the ends, which are sorted like the starts, because entries never overlap.
std::size_t Table::first_after(std::uintptr_t address) const {
  std::size_t low = 0;
  std::size_t high = size_;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (entries_[middle].range.end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void Table::open_gap(std::size_t index) {
  for (std::size_t i = size_; i > index; --i) entries_[i] = entries_[i - 1];
  ++size_;
}

void Table::close_gap(std::size_t index, std::size_t count) {
  for (std::size_t i = index; i + count < size_; ++i) entries_[i] = entries_[i + count];
  size_ -= count;
}

bool Table::insert(const Entry& entry) {
  remove(entry.range);  // the kernel has put the new map here, so anything older is gone
  if (size_ == kEntries) {
    ++lost_;
    return false;
  }
  const std::size_t index = first_after(entry.range.start);
  open_gap(index);
  entries_[index] = entry;
  return true;
}

void Table::remove(bare::Range range) {
  std::size_t index = first_after(range.start);
  if (index == size_ || entries_[index].range.start >= range.end) return;
  if (entries_[index].range.start < range.start) {
    const std::uintptr_t end = entries_[index].range.end;
    entries_[index].range.end = range.start;
    if (end > range.end) {
      if (size_ == kEntries) {
        // Gives up the tail: it merely escapes the limit. A range left in the table although it
        // belongs to another map by now would lose that map's data at the next trim.
        ++lost_;
        return;
      }
      open_gap(index + 1);
      entries_[index + 1] = entries_[index];
      entries_[index + 1].range = {range.end, end};
      return;
    }
    ++index;
  }
  std::size_t count = 0;
  while (index + count < size_ && entries_[index + count].range.end <= range.end) ++count;
  close_gap(index, count);
  if (index < size_ && entries_[index].range.start < range.end) {
    entries_[index].range.start = range.end;
  }
}

// With a full table the entry stays whole; set_aside() then protects more than it was asked to.
void Table::split(std::uintptr_t address) {
  const std::size_t index = first_after(address);
  if (index == size_ || entries_[index].range.start >= address || size_ == kEntries) return;
  open_gap(index + 1);
  entries_[index + 1] = entries_[index];
  entries_[index].range.end = entries_[index + 1].range.start = address;
}

bool Table::set_aside(bare::Range range) {
  std::size_t index = first_after(range.start);
  if (index == size_ || entries_[index].range.start >= range.end) return false;
  split(range.start);
  split(range.end);
  for (index = first_after(range.start); index < size_ && entries_[index].range.start < range.end;
       ++index) {
    entries_[index].aside = true;
  }
  return true;
}

// Entries that set_aside() has split stay split: together they cover the same pages.
void Table::put_back(bare::Range range) {
  for (std::size_t i = first_after(range.start); i < size_ && entries_[i].range.start < range.end;
       ++i) {
    entries_[i].aside = false;
  }
}

void Table::drop_aside(bare::Range range) {
  std::size_t i = first_after(range.start);
  while (i < size_ && entries_[i].range.start < range.end) {
    if (!entries_[i].aside) {  // another thread has mapped it here since the call returned
      ++i;
      continue;
    }
    // An entry that could not be split goes with parts that are still mapped.
    if (entries_[i].range.start < range.start || entries_[i].range.end > range.end) ++lost_;
    close_gap(i, 1);
  }
}

const Entry* Table::at(std::uintptr_t address) const {
  const std::size_t index = first_after(address);
  return index < size_ && entries_[index].range.start <= address ? &entries_[index] : nullptr;
}

// One way only: once a private map was writable it may hold copies, even if it is read-only again.
void Table::make_writable(bare::Range range) {
  for (std::size_t i = first_after(range.start); i < size_ && entries_[i].range.start < range.end;
       ++i) {
    if (entries_[i].kind == Kind::private_clean) entries_[i].kind = Kind::private_dirty;
  }
}

}  // namespace lowtide::ceiling
