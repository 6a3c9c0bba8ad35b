// write_behind.h - bounds the dirty pages of a file that is being written.
//
// The kernel lets dirty pages grow to a fifth of the memory, and charges them to the cgroup of the
// process. Here they are counted. Each time a chunk of them has come together, its way to the disk
// begins, and the thread that completed it waits until the chunk before is there and drops its
// pages.
#pragma once

#include <cstdint>

#include "core/mutex.h"
#include "os/write_file.h"

namespace lowtide {

// Any thread. At most three chunks of pages are dirty or under way, and what threads are writing
// meanwhile.
class WriteBehind {
 public:
  // The file must outlive it.
  WriteBehind(WriteFile& file, std::uint64_t chunk_bytes)
      : file_(file), chunk_bytes_(chunk_bytes) {}

  // `cached_bytes` of these bytes were written into the page cache. Throws the IoError of a page
  // that could not be written, of this range or an earlier one.
  void wrote(std::uint64_t offset_bytes, std::uint64_t size_bytes, std::uint64_t cached_bytes);
  // Everything is on the disk, and its pages are dropped.
  void drain();

 private:
  struct Range {  // of the file; what lies between two writes may be in it
    std::uint64_t first_bytes = 0;
    std::uint64_t end_bytes = 0;
    std::uint64_t dirty_bytes = 0;
  };
  void finish(const Range& range);

  WriteFile& file_;
  const std::uint64_t chunk_bytes_;
  Mutex mutex_;
  Range filling_ LOWTIDE_GUARDED_BY(mutex_);
  Mutex on_its_way_mutex_;  // held while a thread waits for the disk, so that others wait too
  Range on_its_way_ LOWTIDE_GUARDED_BY(on_its_way_mutex_);
};

}  // namespace lowtide
