#include "os/files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {
namespace {

std::size_t default_max_open() {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 1024;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, kLeast, kMost);
}

std::shared_ptr<const Shards> with_whole_paths(std::vector<Shard> shards) {
  for (Shard& shard : shards) {
    if (shard.remote == nullptr) shard.path = whole_path(shard.path);
  }
  return std::make_shared<const Shards>(shards);
}

[[noreturn]] void throw_stale(const Shard& shard) {
  throw IoError(ESTALE, "open", shard.path, std::nullopt,
                "the file was replaced or rewritten since it was first opened");
}

}  // namespace

Files::Files(std::shared_ptr<const Shards> shards, std::size_t max_open)
    : shards_(std::move(shards)),
      max_open_(max_open != 0 ? max_open : default_max_open()),
      where_(shards_->size(), recent_.end()) {}

Files::Files(std::vector<Shard> shards, std::size_t max_open)
    : Files(with_whole_paths(std::move(shards)), max_open) {}

std::uint64_t Files::total_bytes() const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards_->size(); ++i) total += shards_->size_bytes(i);
  return total;
}

std::shared_ptr<File> Files::open(std::uint32_t shard) {
  if (shard >= shards_->size()) throw std::out_of_range("no shard " + std::to_string(shard));
  {
    const MutexLock lock(mutex_);
    if (std::shared_ptr<File> found = find_locked(shard)) return found;
  }
  const Shard expected = (*shards_)[shard];
  // Opened without the lock: a slow file system must not block threads whose files are open.
  std::shared_ptr<File> file;
  try {
    file = std::make_shared<File>(expected);
  } catch (const IoError& error) {
    if (error.err != EMFILE) throw;
    {
      Entries closing;
      const MutexLock lock(mutex_);
      closing = shrink_locked(recent_.size() / 2);
    }
    file = std::make_shared<File>(expected);
  }
  Entries closing;
  const MutexLock lock(mutex_);
  if (std::shared_ptr<File> found = find_locked(shard)) return found;
  closing = insert_locked(shard, file);
  return file;
}

std::shared_ptr<File> Files::open_own(std::uint32_t shard) {
  std::shared_ptr<File> shared = open(shard);
  std::shared_ptr<File> own = shared->again();
  if (own == nullptr) return shared;
  const MutexLock lock(mutex_);
  if (advice_ != Advice::normal) (void)own->advise(advice_);
  return own;
}

void Files::adopt(std::uint32_t shard, std::shared_ptr<File> file) {
  if (shard >= shards_->size()) throw std::out_of_range("no shard " + std::to_string(shard));
  const Shard expected = (*shards_)[shard];
  if (file->shard().version != expected.version) throw_stale(expected);
  Entries closing;
  const MutexLock lock(mutex_);
  if (find_locked(shard)) {
    recent_.front().file.swap(file);
  } else {
    closing = insert_locked(shard, std::move(file));
  }
}

void Files::advise_on_open(Advice advice) {
  const MutexLock lock(mutex_);
  advice_ = advice;
  for (const Entry& entry : recent_) (void)entry.file->advise(advice);
}

void Files::verify_open() const {
  std::vector<Entry> open;
  {
    const MutexLock lock(mutex_);
    open.assign(recent_.begin(), recent_.end());
  }
  for (const Entry& entry : open) {
    const Shard expected = (*shards_)[entry.shard];
    const Shard now = entry.file->stat_now();
    if (now.size_bytes < expected.size_bytes) {
      throw FormatError(expected.path + ": the file was truncated since it was opened: expected " +
                        std::to_string(expected.size_bytes) + " bytes, found " +
                        std::to_string(now.size_bytes));
    }
    if (now.version != expected.version && expected.version != kAnyVersion) throw_stale(expected);
  }
}

std::shared_ptr<File> Files::find_locked(std::uint32_t shard) {
  const auto entry = where_[shard];
  if (entry == recent_.end()) return nullptr;
  if (entry != recent_.begin()) recent_.splice(recent_.begin(), recent_, entry);
  return entry->file;
}

Files::Entries Files::insert_locked(std::uint32_t shard, std::shared_ptr<File> file) {
  if (advice_ != Advice::normal) (void)file->advise(advice_);
  recent_.push_front({shard, std::move(file)});
  where_[shard] = recent_.begin();
  return shrink_locked(max_open_);
}

Files::Entries Files::shrink_locked(std::size_t keep) {
  Entries closing;
  while (recent_.size() > keep) {
    const auto last = std::prev(recent_.end());
    where_[last->shard] = recent_.end();
    closing.splice(closing.begin(), recent_, last);
  }
  return closing;
}

}  // namespace lowtide
