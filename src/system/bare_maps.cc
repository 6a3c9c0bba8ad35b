#include "system/bare_maps.h"

#include <sys/ioctl.h>

#include <initializer_list>

#include "system/pagemap_scan.h"

namespace lowtide::bare {

namespace {

// Linux 6.11; not in the headers of Debian 12.
struct MapQuery {
  std::uint64_t size, flags, address;
  std::uint64_t start, end, area_flags, page_bytes, offset, inode;
  std::uint32_t major, minor, name_bytes, build_id_bytes;
  std::uint64_t name, build_id;
};
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr std::uint64_t kWritable = 1 << 1, kShared = 1 << 3, kOrNext = 1 << 4;

struct Cursor {
  const char* at;
  std::uint64_t number(unsigned base) {
    std::uint64_t value = 0;
    for (;; ++at) {
      unsigned digit = base;
      if (*at >= '0' && *at <= '9') digit = static_cast<unsigned>(*at - '0');
      if (*at >= 'a' && *at <= 'f') digit = static_cast<unsigned>(*at - 'a') + 10;
      if (digit >= base) return value;
      value = value * base + digit;
    }
  }
  void skip(char what) {
    while (*at == what) ++at;
  }
};

// "7f00-7f10 r--s 00000000 08:01 1234   /path"; false for the other lines of smaps.
bool parse_area(const char* line, Area& out) {
  Cursor text{line};
  out.range.start = text.number(16);
  if (*text.at != '-' || text.at == line) return false;
  ++text.at;
  out.range.end = text.number(16);
  text.skip(' ');
  out.writable = text.at[0] != 0 && text.at[1] == 'w';
  out.shared = text.at[0] != 0 && text.at[1] != 0 && text.at[2] != 0 && text.at[3] == 's';
  while (*text.at != 0 && *text.at != ' ') ++text.at;
  text.skip(' ');
  out.offset_bytes = text.number(16);
  text.skip(' ');
  const std::uint64_t major = text.number(16);
  text.skip(':');
  out.device = major << 32 | text.number(16);
  text.skip(' ');
  out.inode = text.number(10);
  return true;
}

bool field(const char* line, const char* name, std::uint64_t& kib) {
  while (*name != 0) {
    if (*line++ != *name++) return false;
  }
  Cursor text{line};
  text.skip(' ');
  kib = text.number(10);
  return true;
}

std::uintptr_t larger(std::uintptr_t a, std::uintptr_t b) {
  return a > b ? a : b;
}
std::uintptr_t smaller(std::uintptr_t a, std::uintptr_t b) {
  return a < b ? a : b;
}

}  // namespace

void Lines::start(int fd) {
  fd_ = fd;
  offset_bytes_ = used_ = filled_ = 0;
}

const char* Lines::next() {
  std::size_t length = 0;
  for (;;) {
    if (used_ == filled_) {
      const long count = read_at(fd_, text_, sizeof text_, offset_bytes_);
      if (count <= 0) return nullptr;
      offset_bytes_ += static_cast<std::uint64_t>(count);
      used_ = 0;
      filled_ = static_cast<std::size_t>(count);
    }
    const char letter = text_[used_++];
    if (letter == '\n') break;
    if (length + 1 < sizeof line_) line_[length++] = letter;
  }
  line_[length] = 0;
  return line_;
}

bool OwnMaps::open(Ways ways) {
  statm_ = static_cast<int>(open_file("/proc/self/statm", O_RDONLY));
  maps_ = static_cast<int>(open_file("/proc/self/maps", O_RDONLY));
  if (statm_ < 0 || maps_ < 0) return false;
  if (ways != Ways::no_pagemap) {
    pagemap_ = static_cast<int>(open_file("/proc/self/pagemap", O_RDONLY));
  }
  Area area;
  query_ = ways == Ways::best;
  query_ = query_ && find(reinterpret_cast<std::uintptr_t>(&kMapQuery), area);
  PagemapScan nothing{};
  nothing.size = sizeof nothing;
  scan_ = ways == Ways::best && pagemap_ >= 0 && control(pagemap_, kPagemapScan, &nothing) >= 0;
  if (scan_) return true;
  smaps_ = static_cast<int>(open_file("/proc/self/smaps", O_RDONLY));
  return smaps_ >= 0;
}

void OwnMaps::close() {
  for (int* fd : {&statm_, &maps_, &pagemap_, &smaps_}) {
    if (*fd >= 0) close_file(*fd);
    *fd = -1;
  }
}

std::uint64_t OwnMaps::shared_bytes() {
  char text[128];
  const long count = read_at(statm_, text, sizeof text - 1, 0);
  if (count <= 0) return 0;
  text[count] = 0;
  Cursor numbers{text};
  for (int skipped = 0; skipped < 2; ++skipped) {
    numbers.number(10);
    numbers.skip(' ');
  }
  return numbers.number(10) * page_bytes();
}

void OwnMaps::rewind() {
  last_there_ = false;
  lines_.start(scan_ ? maps_ : smaps_);
}

bool OwnMaps::find(std::uintptr_t address, Area& out, char* path) {
  if (path != nullptr) *path = 0;
  if (!query_) return find_text(address, out);
  MapQuery query{};
  query.size = sizeof query;
  query.flags = kOrNext;
  query.address = address;
  query.name = reinterpret_cast<std::uint64_t>(path);
  query.name_bytes = path == nullptr ? 0 : kPathBytes;
  if (control(maps_, kMapQuery, &query) < 0) return false;
  out.range = {query.start, query.end};
  out.offset_bytes = query.offset;
  out.inode = query.inode;
  out.device = static_cast<std::uint64_t>(query.major) << 32 | query.minor;
  out.writable = (query.area_flags & kWritable) != 0;
  out.shared = (query.area_flags & kShared) != 0;
  return true;
}

bool OwnMaps::find_text(std::uintptr_t address, Area& out) {
  while (!last_there_ || last_.range.end <= address) {
    const char* line = lines_.next();
    if (line == nullptr) return false;
    if (!parse_area(line, last_)) continue;
    last_there_ = true;
    last_counted_ = false;
  }
  out = last_;
  return true;
}

std::uint64_t OwnMaps::told_resident() {
  if (last_counted_) return last_resident_bytes_;
  std::uint64_t rss_kib = 0, own_kib = 0;
  for (const char* line = lines_.next(); line != nullptr; line = lines_.next()) {
    if (field(line, "Anonymous:", own_kib)) break;
    (void)field(line, "Rss:", rss_kib);
  }
  last_counted_ = true;
  last_resident_bytes_ = (rss_kib - smaller(own_kib, rss_kib)) << 10;
  return last_resident_bytes_;
}

bool OwnMaps::visit_pages(Range range, Pages which, Visit visit, void* state) {
  if (!scan_) return walk(range, which, visit, state);
  PageStretch found[256];
  PagemapScan query{};
  query.size = sizeof query;
  query.end = range.end;
  query.stretches = reinterpret_cast<std::uint64_t>(found);
  query.stretches_length = sizeof found / sizeof found[0];
  query.told = which == Pages::copied ? kPageOfFile : kPagePresent;
  query.all_of = kPagePresent;
  if (which == Pages::of_file) query.all_of |= kPageOfFile;  // slower: looks up every page
  if (which == Pages::copied) {
    query.inverted = kPageOfFile;
    query.all_of = kPageOfFile;
    query.any_of = kPagePresent | kPageSwapped;
  }
  for (query.start = range.start; query.start < range.end; query.start = query.walk_end) {
    const long count = control(pagemap_, kPagemapScan, &query);
    if (count < 0 || query.walk_end <= query.start) return false;
    for (long i = 0; i < count; ++i) {
      if (!visit(state, {found[i].start, found[i].end})) return true;
    }
  }
  return true;
}

bool OwnMaps::walk(Range range, Pages which, Visit visit, void* state) {
  if (pagemap_ < 0) return false;
  const auto matches = [which](std::uint64_t entry) {
    if (which == Pages::copied) return entry_copied(entry);
    const std::uint64_t wanted =
        which == Pages::present ? kEntryPresent : kEntryPresent | kEntryOfFile;
    return (entry & wanted) == wanted;
  };
  std::uint64_t entries[1024];
  Range stretch{range.start, range.start};  // found but not yet passed to `visit`
  for (std::uintptr_t at = range.start; at < range.end;) {
    const std::uint64_t left = (range.end - at) / page_bytes();
    const std::size_t wanted = smaller(left, sizeof entries / sizeof entries[0]);
    const long got = read_at(pagemap_, entries, wanted * sizeof entries[0],
                             at / page_bytes() * sizeof entries[0]);
    const long count = got / static_cast<long>(sizeof entries[0]);
    if (got < 0 || count == 0) return false;
    for (long i = 0; i < count; ++i, at += page_bytes()) {
      if (!matches(entries[i])) continue;
      if (stretch.end != at) {
        if (stretch.bytes() != 0 && !visit(state, stretch)) return true;
        stretch.start = at;
      }
      stretch.end = at + page_bytes();
    }
  }
  if (stretch.bytes() != 0) (void)visit(state, stretch);
  return true;
}

std::uint64_t OwnMaps::resident(Range range, bool shared, std::uint64_t& stretches) {
  if (scan_) {
    struct Sum {
      std::uint64_t bytes = 0, stretches = 0;
    } sum;
    const auto add = [](void* to, Range stretch) {
      static_cast<Sum*>(to)->bytes += stretch.bytes();
      ++static_cast<Sum*>(to)->stretches;
      return true;
    };
    if (!visit_pages(range, shared ? Pages::present : Pages::of_file, add, &sum)) return 0;
    stretches += sum.stretches;
    return sum.bytes;
  }
  std::uint64_t bytes = 0;
  Area area;
  std::uintptr_t at = range.start;
  while (at < range.end && find_text(at, area) && area.range.start < range.end) {
    const std::uint64_t told = told_resident();
    const std::uint64_t inside =
        smaller(area.range.end, range.end) - larger(area.range.start, range.start);
    bytes += smaller(told, inside);
    at = area.range.end;
  }
  return bytes;
}

bool OwnMaps::visit_resident(Range range, Visit visit, void* state) {
  return visit_pages(range, Pages::of_file, visit, state);
}

bool OwnMaps::written(Range range) {
  bool found = false;
  const auto note = [](void* flag, Range) {
    *static_cast<bool*>(flag) = true;
    return false;
  };
  return !visit_pages(range, Pages::copied, note, &found) || found;
}

}  // namespace lowtide::bare
