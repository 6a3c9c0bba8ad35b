// shards.h - the files of one data set, stored compactly because there may be a hundred thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// Filled by one thread; immutable afterwards and usable from any thread. Takes about 24 bytes per
// shard plus its name; consecutive shards in the same folder share its name.
class Shards {
 public:
  Shards() = default;
  explicit Shards(const std::vector<Shard>& shards);

  // Throws std::invalid_argument if the shards, or the bytes of their names, exceed 32 bits.
  void add(const Shard& shard);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Shard operator[](std::size_t shard) const {
    return {path(shard), size_bytes(shard), version(shard), remote(shard)};
  }
  [[nodiscard]] std::string path(std::size_t shard) const;
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] std::uint64_t size_bytes(std::size_t shard) const {
    return entries_[shard].size_bytes;
  }
  [[nodiscard]] std::uint64_t version(std::size_t shard) const { return entries_[shard].version; }
  // How to request it; nullptr for a local file.
  [[nodiscard]] std::shared_ptr<const Remote> remote(std::size_t shard) const {
    return is_remote(shard) ? remotes_[shard] : nullptr;
  }
  [[nodiscard]] bool is_remote(std::size_t shard) const {
    return shard < remotes_.size() && remotes_[shard] != nullptr;
  }
  [[nodiscard]] std::size_t remote_count() const { return remote_count_; }
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  struct Entry {
    std::uint64_t size_bytes, version;
    std::uint32_t folder, name;  // index in folders_, offset in names_
  };
  std::vector<Entry> entries_;
  std::vector<std::string> folders_;                    // with the trailing slash
  std::string names_;                                   // all names, without separators
  std::vector<std::shared_ptr<const Remote>> remotes_;  // up to the last one that is remote
  std::size_t remote_count_ = 0;
};

}  // namespace lowtide
