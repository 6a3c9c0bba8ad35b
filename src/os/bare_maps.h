// bare_maps.h - what this process maps and how much of it is resident, asked without allocating.
//
// One thread uses an instance. It holds up to four descriptors, in the table of the thread that
// opened it. Where the kernel is too old for PROCMAP_QUERY (6.11) or PAGEMAP_SCAN (6.7), the same
// answers come from the text of maps and smaps, at some microseconds per map, and from the entries
// of pagemap, at some nanoseconds per page.
#pragma once

#include "os/bare.h"

namespace lowtide::bare {

inline constexpr std::size_t kPathBytes = 4096;

// One mapping as the kernel tells it. Inode 0: no file.
struct Area {
  Range range;
  std::uint64_t offset_bytes = 0;
  std::uint64_t inode = 0;
  std::uint64_t device = 0;  // as in maps; on btrfs and overlayfs not what stat tells
  bool writable = false;
  bool shared = false;
};

// The lines of a /proc file, whatever their length; what is beyond 511 bytes of a line is cut.
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
  // For tests: as on a kernel before 6.7, and as where /proc/self/pagemap is not to be had either.
  enum class Ways { best, old_kernel, no_pagemap };

  // False where /proc is not there or hidden.
  [[nodiscard]] bool open(Ways ways = Ways::best);
  void close();

  // Pages of files and of shared memory that this process maps now; a few microseconds, and up to
  // some hundred KiB a core behind the truth.
  [[nodiscard]] std::uint64_t shared_bytes();

  // Before a run of find or resident calls with rising addresses.
  void rewind();
  // The first mapping that ends after `address`; false when there is none. `path`, when given, has
  // room for kPathBytes; it becomes empty where the kernel is too old to tell cheaply.
  [[nodiscard]] bool find(std::uintptr_t address, Area& out, char* path = nullptr);
  // Bytes of `range` that are in memory and belong to the file. Copies made by writes into a
  // private map are not counted; of a shared map every page is the file's, which is cheaper to
  // count. `runs` goes up by the number of runs that they are in, where PAGEMAP_SCAN tells it.
  [[nodiscard]] std::uint64_t resident(Range range, bool shared, std::uint64_t& runs);
  // Calls `visit` for the runs of such pages, and never for a copy, until it returns false. False
  // where nothing tells which they are.
  using Visit = bool (*)(void* state, Range run);
  [[nodiscard]] bool visit_resident(Range range, Visit visit, void* state);
  // True when pages of a private map were copied by writes, however the program came to write.
  // Where nothing tells it is true: a copy that is thought to be there is never lost.
  [[nodiscard]] bool written(Range range);

 private:
  enum class Pages { present, of_file, copied };
  // Both call `visit` for the runs of such pages until it returns false, and are false where the
  // kernel refuses.
  [[nodiscard]] bool visit_pages(Range range, Pages which, Visit visit, void* state);
  [[nodiscard]] bool walk(Range range, Pages which, Visit visit, void* state);
  [[nodiscard]] bool find_text(std::uintptr_t address, Area& out);
  [[nodiscard]] std::uint64_t told_resident();  // of last_, from smaps

  int statm_ = -1, maps_ = -1, pagemap_ = -1, smaps_ = -1;
  bool query_ = false;  // PROCMAP_QUERY is there
  bool scan_ = false;   // PAGEMAP_SCAN is there
  Lines lines_;         // of maps or of smaps, whichever was rewound last
  Area last_;
  bool last_there_ = false;
  bool last_counted_ = false;
  std::uint64_t last_resident_bytes_ = 0;
};

}  // namespace lowtide::bare
