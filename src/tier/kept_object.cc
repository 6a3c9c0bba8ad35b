#include "tier/kept_object.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <optional>
#include <utility>

#include "core/hash.h"
#include "lowtide/error.h"
#include "os/paths.h"
#include "os/shared_memory.h"
#include "os/write_file.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMagic = 0x31'54'50'45'4b'54'4c'00;  // "\0LTKEPT1" in memory

// The start of KEY.blocks. Only this machine reads it again, so the byte order is its own.
struct BlocksHeader {
  std::uint64_t magic = kMagic;
  std::uint64_t block_bytes = KeptObject::kBlockBytes;
  std::uint64_t object_bytes = 0;
  std::uint64_t id = 0;
  std::uint64_t check = 0;      // of the four above
  std::uint64_t used_unix = 0;  // when it was opened last; writing it moves the mtime
  std::array<std::uint64_t, 2> spare = {};

  [[nodiscard]] std::uint64_t expected_check() const {
    return hash_with(hash_with(hash_with(magic, block_bytes), object_bytes), id);
  }
  [[nodiscard]] bool sound(std::uint64_t size_bytes) const {
    return magic == kMagic && block_bytes == KeptObject::kBlockBytes &&
           object_bytes == size_bytes && check == expected_check();
  }
};
static_assert(sizeof(BlocksHeader) == 64);

std::uint64_t place_of(std::uint64_t block) {
  return sizeof(BlocksHeader) + block * sizeof(std::uint64_t);
}

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

std::uint64_t unix_now() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

// Four chains side by side: one alone waits for its multiplications.
std::uint64_t quick_hash(std::uint64_t seed, std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 4> lanes{seed, seed + 1, seed + 2, seed + 3};
  while (bytes.size() >= sizeof(lanes)) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = hash_with(lanes[i], words[i]);
    bytes = bytes.subspan(sizeof(words));
  }
  std::uint64_t hash = hash_with(seed, bytes);
  for (const std::uint64_t lane : lanes) hash = hash_with(hash, lane);
  return hash;
}

}  // namespace

std::string object_key(const Shard& shard) {
  const std::string& version =
      shard.remote->etag.empty() ? shard.remote->modified : shard.remote->etag;
  if (version.empty()) return "";
  const std::string text = shard.path + '\n' + version + '\n' + std::to_string(shard.size_bytes);
  const auto bytes = std::as_bytes(std::span(text));
  return hex_text(hash_with(1, bytes)) + hex_text(hash_with(2, bytes));
}

KeptObject::KeptObject(const std::string& folder, std::string key, std::uint64_t size_bytes)
    : folder_(folder),
      key_(std::move(key)),
      blocks_path_(folder + "/" + key_ + ".blocks"),
      size_bytes_(size_bytes),
      states_((size_bytes + kBlockBytes - 1) / kBlockBytes) {
  constexpr int kTries = 8;  // others may make or remove it at the same time
  for (int i = 0; i < kTries; ++i) {
    if (find(size_bytes) || make(size_bytes)) return;
  }
  throw IoError(EBUSY, "keep an object", blocks_path_, std::nullopt,
                "other processes keep removing it");
}

std::string KeptObject::data_name(std::uint64_t id) const {
  return folder_ + "/" + key_ + "-" + hex_text(id) + ".data";
}

bool KeptObject::find(std::uint64_t size_bytes) {
  std::optional<WriteFile> file = WriteFile::find(blocks_path_, blocks_path_);
  if (!file) return false;
  BlocksHeader header;
  std::vector<std::uint64_t> sums(blocks());
  const bool whole = file->size_bytes() >= place_of(blocks());
  if (whole) {
    file->read_exact(0, bytes_of(header));
    file->read_exact(place_of(0), std::as_writable_bytes(std::span(sums)));
  }
  const std::string data = data_name(header.id);
  const auto stamp = whole && header.sound(size_bytes) ? stamp_of(data) : std::nullopt;
  if (!stamp || stamp->size_bytes != size_bytes) {
    if (const int err = remove_file(blocks_path_)) throw IoError(err, "remove", blocks_path_);
    return false;
  }
  header.used_unix = unix_now();
  file->write(0, bytes_of(header));
  id_ = header.id;
  data_path_ = data;
  for (std::size_t i = 0; i < sums.size(); ++i) states_[i] = sums[i] == 0 ? kAbsent : kStored;
  return true;
}

// False: another process was faster.
bool KeptObject::make(std::uint64_t size_bytes) {
  BlocksHeader header{.object_bytes = size_bytes, .id = random_number(), .used_unix = unix_now()};
  header.check = header.expected_check();
  const std::string data = data_name(header.id), blocks = data + ".new";
  int err = 0;
  try {
    WriteFile::create(data, data).resize(size_bytes);
    WriteFile file = WriteFile::create(blocks, blocks);
    file.resize(place_of(this->blocks()));
    file.write(0, bytes_of(header));
    err = move_new(blocks, blocks_path_);
  } catch (...) {
    (void)remove_file(blocks);
    (void)remove_file(data);
    throw;
  }
  if (err == 0) {
    id_ = header.id;
    data_path_ = data;
    return true;
  }
  (void)remove_file(blocks);
  (void)remove_file(data);
  if (err != EEXIST) throw IoError(err, "rename", blocks_path_);
  return false;
}

std::uint64_t KeptObject::block_bytes(std::uint64_t block) const {
  return std::min(kBlockBytes, size_bytes_ - block * kBlockBytes);
}

bool KeptObject::ready(std::uint64_t offset_bytes, std::uint64_t size_bytes) const noexcept {
  const std::uint64_t first = offset_bytes / kBlockBytes;
  const std::uint64_t end = (offset_bytes + size_bytes + kBlockBytes - 1) / kBlockBytes;
  if (end > states_.size()) return false;
  for (std::uint64_t i = first; i < end; ++i) {
    if (states_[i].load(std::memory_order_acquire) != kReady) return false;
  }
  return true;
}

bool KeptObject::stored(std::uint64_t offset_bytes, std::uint64_t size_bytes) const noexcept {
  const std::uint64_t first = offset_bytes / kBlockBytes;
  const std::uint64_t end = (offset_bytes + size_bytes + kBlockBytes - 1) / kBlockBytes;
  for (std::uint64_t i = first; i < std::min<std::uint64_t>(end, states_.size()); ++i) {
    if (states_[i].load(std::memory_order_relaxed) != kAbsent) return true;
  }
  return false;
}

// Never 0, which stands for a block that is not here.
std::uint64_t KeptObject::checksum(std::uint64_t block, std::span<const std::byte> bytes) const {
  return std::max<std::uint64_t>(quick_hash(hash_with(id_, block), bytes), 1);
}

void KeptObject::mark_ready(std::uint64_t block) noexcept {
  if (states_[block].exchange(kReady, std::memory_order_release) != kReady)
    ready_blocks_.fetch_add(1, std::memory_order_relaxed);
}

bool KeptObject::load(std::uint64_t block, std::span<std::byte> out) noexcept {
  try {
    const std::optional<WriteFile> blocks = WriteFile::find(blocks_path_, blocks_path_);
    BlocksHeader header;
    std::uint64_t expected = 0;
    if (!blocks) return false;
    blocks->read_exact(0, bytes_of(header));
    blocks->read_exact(place_of(block), bytes_of(expected));
    if (header.id != id_ || expected == 0) return false;
    std::optional<WriteFile> data = WriteFile::find(data_path_, data_path_);
    if (!data) return false;
    data->open_direct(data_path_);
    data->read_blocks(block * kBlockBytes, out);
    if (checksum(block, out.first(block_bytes(block))) != expected) return false;
    mark_ready(block);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void KeptObject::keep(std::uint64_t block, std::span<const std::byte> bytes) {
  std::optional<WriteFile> blocks = WriteFile::find(blocks_path_, blocks_path_);
  std::optional<WriteFile> data = WriteFile::find(data_path_, data_path_);
  BlocksHeader header;
  if (blocks) blocks->read_exact(0, bytes_of(header));
  if (!blocks || !data || header.id != id_) {
    lost_.store(true, std::memory_order_relaxed);
    return;
  }
  data->open_direct(data_path_);
  // Nothing waits for pages that went through the page cache: they need no order.
  if (data->write(block * kBlockBytes, bytes) > 0)
    data->start_write_back(block * kBlockBytes, bytes.size());
  std::uint64_t sum = checksum(block, bytes);
  blocks->write(place_of(block), bytes_of(sum));
  mark_ready(block);
}

}  // namespace lowtide
