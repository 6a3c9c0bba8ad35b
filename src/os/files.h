// files.h - the shards of one data set as open files, with a bounded number of descriptors.
//
// Shards are identified by whole_path, size and version from the start, because the process may
// have changed its folder by the time a name is used. A File is opened when first needed, and the
// least recently used one is closed. A shard that is opened again must still be the same file, so a
// replaced file gives an error and never different bytes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/extent.h"
#include "core/mutex.h"
#include "core/shards.h"
#include "os/file.h"

namespace lowtide {

class Files {
 public:
  // `max_open` 0: a quarter of RLIMIT_NOFILE, at most 1024 and at least 8. Each open File has up to
  // two descriptors.
  explicit Files(std::shared_ptr<const Shards> shards, std::size_t max_open = 0);
  // The same; converts the paths to absolute ones.
  explicit Files(std::vector<Shard> shards, std::size_t max_open = 0);
  // The memory it needs per shard, open or not.
  static constexpr std::uint64_t kShardBytes = sizeof(void*);

  [[nodiscard]] const std::shared_ptr<const Shards>& shards() const { return shards_; }
  [[nodiscard]] std::size_t max_open() const { return max_open_; }
  [[nodiscard]] std::uint64_t total_bytes() const;

  // The open file, which stays open while the pointer is held, even if it leaves the table. Throws
  // IoError, or std::out_of_range if there is no such shard.
  [[nodiscard]] std::shared_ptr<File> open(std::uint32_t shard);
  // The same with an unshared file description, if possible; never in the table.
  [[nodiscard]] std::shared_ptr<File> open_own(std::uint32_t shard);
  // Adds a file that is already open, so that the file whose header was read is the one read later.
  // Throws IoError(ESTALE) if it is not the file that the Shard names.
  void adopt(std::uint32_t shard, std::shared_ptr<File> file);

  // Gives this advice for every file, open now or later. Call it before the first read.
  void advise_on_open(Advice advice);

  // Compares every open file with its Shard. Throws FormatError for a truncated file, and
  // IoError(ESTALE) for one whose bytes changed, judged by version.
  void verify_open() const;

 private:
  struct Entry {
    std::uint32_t shard;
    std::shared_ptr<File> file;
  };
  using Entries = std::list<Entry>;  // destruction closes the files; done without the lock
  [[nodiscard]] std::shared_ptr<File> find_locked(std::uint32_t shard) LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] Entries insert_locked(std::uint32_t shard, std::shared_ptr<File> file)
      LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] Entries shrink_locked(std::size_t keep) LOWTIDE_REQUIRES(mutex_);

  const std::shared_ptr<const Shards> shards_;
  const std::size_t max_open_;
  mutable Mutex mutex_;
  Advice advice_ LOWTIDE_GUARDED_BY(mutex_) = Advice::normal;
  Entries recent_ LOWTIDE_GUARDED_BY(mutex_);  // most recently used first
  // By shard; end() if not open.
  std::vector<Entries::iterator> where_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide
