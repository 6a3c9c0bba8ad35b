// bare_maps.h - what this process maps and how much of it is resident, without allocating.
//
// Use an instance from one thread. It holds up to four descriptors, in the table of the thread that
// opened it. If the kernel is too old for PROCMAP_QUERY (6.11) or PAGEMAP_SCAN (6.7), the same
// answers come from the text of maps and smaps, at some microseconds per map, and from the entries
// of pagemap, at some nanoseconds per page.
#pragma once

#include "os/bare.h"

namespace lowtide::bare {

inline constexpr std::size_t kPathBytes = 4096;

// One mapping as the kernel reports it. Inode 0: no file.
struct Area {
  Range range;
  std::uint64_t offset_bytes = 0;
  std::uint64_t inode = 0;
  std::uint64_t device = 0;  // as in maps; on btrfs and overlayfs it differs from stat's
  bool writable = false;
  bool shared = false;
};

// The lines of a /proc file; a line is cut after 511 bytes.
class Lines {
 public:
  void start(int fd);
  [[nodiscard]] const char* next();  // ends with 0; null after the last

 private:
  int fd_ = -1;
  std::uint64_t offset_bytes_ = 0;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  char text_[4096];
  char line_[512];
};

class OwnMaps {
 public:
  // For tests: like a kernel before 6.7, and like one where /proc/self/pagemap is missing too.
  enum class Ways { best, old_kernel, no_pagemap };

  // False if /proc is missing or hidden.
  [[nodiscard]] bool open(Ways ways = Ways::best);
  void close();

  // Pages of files and of shared memory that this process currently maps. Takes a few microseconds,
  // and lags by up to some hundred KiB per core.
  [[nodiscard]] std::uint64_t shared_bytes();

  // Call before a series of find or resident calls with ascending addresses.
  void rewind();
  // The first mapping that ends after `address`; false if there is none. `path`, if given, has room
  // for kPathBytes; it becomes empty if the kernel is too old to report it cheaply.
  [[nodiscard]] bool find(std::uintptr_t address, Area& out, char* path = nullptr);
  // Bytes of `range` that are in memory and belong to the file. Copies made by writes into a
  // private map do not count; in a shared map every page is the file's, which is cheaper to count.
  // Adds the number of stretches to `stretches`, if PAGEMAP_SCAN is available.
  [[nodiscard]] std::uint64_t resident(Range range, bool shared, std::uint64_t& stretches);
  // Calls `visit` for the stretches of such pages, and never for a copy, until it returns false.
  // Returns false if the kernel does not report which they are.
  using Visit = bool (*)(void* state, Range stretch);
  [[nodiscard]] bool visit_resident(Range range, Visit visit, void* state);
  // True if pages of a private map were copied by writes, however the program wrote them. Also true
  // if the kernel does not report it, so that a possible copy is never lost.
  [[nodiscard]] bool written(Range range);

 private:
  enum class Pages { present, of_file, copied };
  // Both call `visit` for the stretches of such pages until it returns false, and return false if
  // the kernel refuses.
  [[nodiscard]] bool visit_pages(Range range, Pages which, Visit visit, void* state);
  [[nodiscard]] bool walk(Range range, Pages which, Visit visit, void* state);
  [[nodiscard]] bool find_text(std::uintptr_t address, Area& out);
  [[nodiscard]] std::uint64_t told_resident();  // of last_, from smaps

  int statm_ = -1, maps_ = -1, pagemap_ = -1, smaps_ = -1;
  bool query_ = false;  // PROCMAP_QUERY is available
  bool scan_ = false;   // PAGEMAP_SCAN is available
  Lines lines_;         // of maps or of smaps, whichever was rewound last
  Area last_;
  bool last_there_ = false;
  bool last_counted_ = false;
  std::uint64_t last_resident_bytes_ = 0;
};

}  // namespace lowtide::bare
