#include "core/shards.h"

#include <limits>
#include <stdexcept>

namespace lowtide {

Shards::Shards(const std::vector<Shard>& shards) {
  for (const Shard& shard : shards) add(shard);
}

void Shards::add(const Shard& shard) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::string_view path = shard.path;
  const std::size_t slash = path.rfind('/');
  const std::string_view folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  const std::string_view name = path.substr(folder.size());
  if (entries_.size() >= kMost || names_.size() + name.size() > kMost) {
    throw std::invalid_argument("too many files: " + std::to_string(entries_.size() + 1) +
                                "; at most 2^32 - 1 files with 4 GiB of names can be joined");
  }
  if (folders_.empty() || folders_.back() != folder) folders_.emplace_back(folder);
  entries_.push_back({shard.size_bytes, shard.version,
                      static_cast<std::uint32_t>(folders_.size() - 1),
                      static_cast<std::uint32_t>(names_.size())});
  names_ += name;
  if (shard.remote == nullptr) return;
  remotes_.resize(entries_.size());
  remotes_.back() = shard.remote;
  ++remote_count_;
}

std::string Shards::path(std::size_t shard) const {
  const Entry& entry = entries_[shard];
  const std::size_t end = shard + 1 < entries_.size() ? entries_[shard + 1].name : names_.size();
  return folders_[entry.folder] + names_.substr(entry.name, end - entry.name);
}

std::vector<std::string> Shards::paths() const {
  std::vector<std::string> all;
  all.reserve(size());
  for (std::size_t shard = 0; shard < size(); ++shard) all.push_back(path(shard));
  return all;
}

std::uint64_t Shards::held_bytes() const {
  std::uint64_t bytes = entries_.capacity() * sizeof(Entry) + names_.capacity();
  for (const std::string& folder : folders_) bytes += sizeof(folder) + folder.capacity();
  bytes += remotes_.capacity() * sizeof(remotes_.front());
  for (const auto& remote : remotes_) bytes += remote != nullptr ? remote->held_bytes() : 0;
  return bytes;
}

}  // namespace lowtide
