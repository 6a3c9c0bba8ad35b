#include "tier/tier_folder.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <span>
#include <utility>

#include "core/hash.h"
#include "lowtide/error.h"
#include "os/paths.h"
#include "os/shared_memory.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kStepBytes = 64ULL * 1024 * 1024;
// A file without its partner this long after it was made belongs to a process that was killed.
constexpr std::int64_t kOrphanNs = 3600LL * 1'000'000'000;
constexpr std::size_t kKeyLetters = 32;

std::int64_t now_unix_ns() {
  return static_cast<std::int64_t>(std::time(nullptr)) * 1'000'000'000;
}

WriteFile lock_file(const std::string& path) {
  for (;;) {
    if (std::optional<WriteFile> file = WriteFile::find(path, path)) return std::move(*file);
    try {
      return WriteFile::create(path, path);
    } catch (const IoError& error) {
      if (error.err != EEXIST) throw;  // else another process has just made it
    }
  }
}

}  // namespace

// The files of one object, or what a killed process left of them.
struct TierFolder::Item {
  std::string key;
  std::vector<std::string> paths;  // KEY.blocks first
  std::uint64_t bytes = 0;         // on the disk
  std::int64_t used_ns = 0;        // mtime of KEY.blocks, or of the youngest file without it
  bool orphan = true;              // there is no KEY.blocks
};

TierFolder::TierFolder(std::string path, std::uint64_t limit_bytes)
    : path_(std::move(path)), limit_bytes_(limit_bytes) {
  make_folder(path_);
  make_folder(path_ + "/users");
}

TierFolder::~TierFolder() {
  if (user_) (void)remove_file(user_path_);
}

void TierFolder::use(const std::vector<std::string>& keys) {
  user_path_ = path_ + "/users/" + hex_text(random_number());
  user_.emplace(WriteFile::create(user_path_, user_path_));
  (void)user_->lock();  // before the keys are there, so that nobody takes them for abandoned
  std::string text;
  for (const std::string& key : keys) text += key;
  user_->write(0, std::as_bytes(std::span(text)));
}

bool TierFolder::allows(std::uint64_t bytes) {
  if (allowance_bytes_ < bytes) look(bytes);
  if (allowance_bytes_ < bytes) return false;
  allowance_bytes_ -= bytes;
  return true;
}

std::vector<std::string> TierFolder::keys_in_use() const {
  std::vector<std::string> keys;
  for (const std::string& name : list_folder(path_ + "/users")) {
    const std::string path = path_ + "/users/" + name;
    std::optional<WriteFile> file = WriteFile::find(path, path);
    if (!file) continue;
    if (path != user_path_ && file->lock() == FileLock::taken) {
      (void)remove_file(path);  // its owner has ended
      continue;
    }
    std::string text(file->size_bytes(), '\0');
    file->read_exact(0, std::as_writable_bytes(std::span(text)));
    for (std::size_t at = 0; at + kKeyLetters <= text.size(); at += kKeyLetters)
      keys.push_back(text.substr(at, kKeyLetters));
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<TierFolder::Item> TierFolder::items(const std::vector<std::string>& names) const {
  std::map<std::string, Item> found;
  for (const std::string& name : names) {
    const bool blocks = name.ends_with(".blocks");
    const bool ours = blocks || name.ends_with(".data") || name.ends_with(".data.new");
    if (!ours || name.size() <= kKeyLetters) continue;
    const std::string path = path_ + "/" + name;
    const auto stamp = stamp_of(path);
    if (!stamp) continue;  // another process has just removed it
    Item& item = found[name.substr(0, kKeyLetters)];
    item.key = name.substr(0, kKeyLetters);
    item.bytes += disk_bytes(path);
    if (blocks) {
      item.paths.insert(item.paths.begin(), path);
      item.used_ns = stamp->mtime_ns;
      item.orphan = false;
    } else {
      item.paths.push_back(path);
      if (item.orphan) item.used_ns = std::max(item.used_ns, stamp->mtime_ns);
    }
  }
  std::vector<Item> result;
  for (auto& [key, item] : found) result.push_back(std::move(item));
  std::ranges::sort(result, {}, &Item::used_ns);
  return result;
}

void TierFolder::look(std::uint64_t bytes) {
  allowance_bytes_ = 0;
  WriteFile lock = lock_file(path_ + "/lock");
  const bool may_remove = lock.lock() != FileLock::held_by_another;

  std::vector<Item> all = items(list_folder(path_));
  std::uint64_t total = 0;
  for (const Item& item : all) total += item.bytes;
  std::uint64_t limit = limit_bytes_;
  if (limit == 0) {
    const auto space = space_at(path_);
    const std::uint64_t kept_free = space ? space->total_bytes / 10 : 0;
    limit =
        space && space->free_bytes > kept_free ? total + (space->free_bytes - kept_free) : total;
  }
  const std::uint64_t wanted = std::min(std::max(bytes, std::min(kStepBytes, limit / 8)), limit);
  const std::vector<std::string> used = may_remove ? keys_in_use() : std::vector<std::string>();
  for (const Item& item : all) {
    const bool abandoned = item.orphan && now_unix_ns() - item.used_ns > kOrphanNs;
    const bool crowded = total + wanted > limit && !item.orphan;
    if (!may_remove || !(abandoned || crowded) || std::ranges::binary_search(used, item.key))
      continue;
    for (const std::string& path : item.paths) (void)remove_file(path);
    total -= item.bytes;
  }
  if (total < limit) allowance_bytes_ = std::min(limit - total, kStepBytes);
}

}  // namespace lowtide
