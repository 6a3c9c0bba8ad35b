// kept_object.h - the blocks of one object that are on a local disk.
//
// They are in two files of a folder that processes share. KEY.blocks has a header and a checksum
// per block, 0 for a block that is not here. KEY-ID.data has the blocks at the places that they
// have in the object. ID is drawn when the files are made: if somebody removes them and somebody
// else makes them again, a reader finds its own bytes or no file, never a file with fewer blocks
// than it knows of. A block counts if its bytes have its checksum, so neither a crash nor two
// processes that write the same block can leave a wrong one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// What identifies one version of an object: a hash of its address without secrets, its ETag (or
// when it was modified) and its size. Empty if the server gave neither: nothing would notice a
// change.
[[nodiscard]] std::string object_key(const Shard& shard);

// Holds no descriptor between calls. One thread loads and keeps; the rest is for any thread.
class KeptObject {
 public:
  static constexpr std::uint64_t kBlockBytes = 1024 * 1024;

  // Finds the files, or makes them. Throws IoError.
  KeptObject(const std::string& folder, std::string key, std::uint64_t size_bytes);

  [[nodiscard]] const std::string& key() const { return key_; }
  // Has the size of the object. The blocks that are not here are holes.
  [[nodiscard]] const std::string& data_path() const { return data_path_; }
  [[nodiscard]] std::uint64_t blocks() const { return states_.size(); }
  [[nodiscard]] std::uint64_t block_bytes(std::uint64_t block) const;
  // Whether the extent lies inside the object.
  [[nodiscard]] bool holds(const Extent& extent) const noexcept {
    return extent.end_bytes() <= size_bytes_;
  }

  // Whether every block of this range was checked by this process. False beyond the object.
  [[nodiscard]] bool ready(std::uint64_t offset_bytes, std::uint64_t size_bytes) const noexcept;
  [[nodiscard]] std::uint64_t ready_blocks() const noexcept {
    return ready_blocks_.load(std::memory_order_relaxed);
  }
  // Whether a block of this range was here when the object was opened, or is now.
  [[nodiscard]] bool stored(std::uint64_t offset_bytes, std::uint64_t size_bytes) const noexcept;

  // Reads a block into the first bytes of `out`, which has kBlockBytes on a page boundary. False:
  // it is not here, damaged, or cannot be read.
  [[nodiscard]] bool load(std::uint64_t block, std::span<std::byte> out) noexcept;
  // Writes a block, unless the files were removed since they were opened. Throws IoError.
  void keep(std::uint64_t block, std::span<const std::byte> bytes);
  // Whether keep() found that they were removed.
  [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  enum State : std::uint8_t { kAbsent, kStored, kReady };

  [[nodiscard]] bool find(std::uint64_t size_bytes);
  [[nodiscard]] bool make(std::uint64_t size_bytes);
  [[nodiscard]] std::uint64_t checksum(std::uint64_t block, std::span<const std::byte> bytes) const;
  [[nodiscard]] std::string data_name(std::uint64_t id) const;
  void mark_ready(std::uint64_t block) noexcept;

  const std::string folder_, key_, blocks_path_;
  const std::uint64_t size_bytes_;
  std::uint64_t id_ = 0;
  std::string data_path_;
  std::vector<std::atomic<std::uint8_t>> states_;
  std::atomic<std::uint64_t> ready_blocks_{0};
  std::atomic<bool> lost_{false};
};

}  // namespace lowtide
