// files.h - the shards of one data set as open files, with at most so many descriptors at a time.
//
// Shards are known by name, size and version from the start: by their whole_path, because the
// process may stand in another folder by the time a name is used. A File is opened when first
// needed and closed when it has not been used for longest. A shard opened again must be the same
// file still, so a replaced file gives an error and never new bytes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/extent.h"
#include "core/shards.h"
#include "os/file.h"

namespace lowtide {

class Files {
 public:
  // `max_open` 0: a quarter of RLIMIT_NOFILE, at most 1024 and at least 8. Each open File has up to
  // two descriptors.
  explicit Files(std::shared_ptr<const Shards> shards, std::size_t max_open = 0);
  // The same; paths are made whole here.
  explicit Files(std::vector<Shard> shards, std::size_t max_open = 0);
  // What it holds for each shard, open or not.
  static constexpr std::uint64_t kShardBytes = sizeof(void*);

  [[nodiscard]] const std::shared_ptr<const Shards>& shards() const { return shards_; }
  [[nodiscard]] std::size_t max_open() const { return max_open_; }
  [[nodiscard]] std::uint64_t total_bytes() const;

  // The open file, kept open for as long as the pointer is held even if it leaves the table.
  // Throws IoError; std::out_of_range for a shard that is not there.
  [[nodiscard]] std::shared_ptr<File> open(std::uint32_t shard);
  // The same with a description that nobody shares, where that can be had; never in the table.
  [[nodiscard]] std::shared_ptr<File> open_own(std::uint32_t shard);
  // Puts a file in that is open already, so that the one whose header was read is the one that is
  // read on. Throws IoError(ESTALE) when it is not the file that the Shard names.
  void adopt(std::uint32_t shard, std::shared_ptr<File> file);

  // Gives this advice for every file, those open now and those opened later. Before the first read.
  void advise_on_open(Advice advice);

  // Compares every open file with its Shard: throws FormatError for a truncated one and
  // IoError(ESTALE) for one whose bytes were changed, by version.
  void verify_open() const;

 private:
  struct Entry {
    std::uint32_t shard;
    std::shared_ptr<File> file;
  };
  using Entries = std::list<Entry>;  // closed when destroyed, which is done without the lock
  [[nodiscard]] std::shared_ptr<File> find_locked(std::uint32_t shard);
  [[nodiscard]] Entries insert_locked(std::uint32_t shard, std::shared_ptr<File> file);
  [[nodiscard]] Entries shrink_locked(std::size_t keep);

  const std::shared_ptr<const Shards> shards_;
  const std::size_t max_open_;
  mutable std::mutex mutex_;
  Advice advice_ = Advice::normal;
  Entries recent_;                        // most recently used first
  std::vector<Entries::iterator> where_;  // by shard; end() when not open
};

}  // namespace lowtide
