// shards.h - the files of one data set, stored compactly: a data set may have a hundred thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// Filled by one thread, then immutable and for any thread. About 24 bytes per shard, and its name;
// a folder is stored once for all shards in a row that lie in it.
class Shards {
 public:
  Shards() = default;
  explicit Shards(const std::vector<Shard>& shards);

  // Throws std::invalid_argument for more shards, or longer names, than 32 bits count.
  void add(const Shard& shard);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Shard operator[](std::size_t shard) const {
    return {path(shard), size_bytes(shard), version(shard)};
  }
  [[nodiscard]] std::string path(std::size_t shard) const;
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] std::uint64_t size_bytes(std::size_t shard) const {
    return entries_[shard].size_bytes;
  }
  [[nodiscard]] std::uint64_t version(std::size_t shard) const { return entries_[shard].version; }
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  struct Entry {
    std::uint64_t size_bytes, version;
    std::uint32_t folder, name;  // where they start
  };
  std::vector<Entry> entries_;
  std::vector<std::string> folders_;  // with the last slash
  std::string names_;                 // one behind the other
};

}  // namespace lowtide
