#include "writer/gather.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"

namespace lowtide {

// A buffer that this thread uses; idle again at the end of the scope.
class Gather::Use {
 public:
  Use(Gather& gather, Buffer& buffer) : gather_(gather), buffer_(buffer) {}
  ~Use() {
    const MutexLock lock(gather_.mutex_);
    buffer_.busy = false;
    gather_.idle_.notify_all();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Gather& gather_;
  Buffer& buffer_;
};

Gather::Gather(PublishedFile& file, std::uint64_t buffer_bytes, Budget& budget)
    : buffer_bytes_(buffer_bytes), scatter_(file, budget) {}

void Gather::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Buffer* buffer = nullptr;
    bool flush_it = false;
    {
      const MutexLock lock(mutex_);
      const std::uint64_t end = offset_bytes + bytes.size();
      while ((buffer = choose(offset_bytes, end, &flush_it)) == nullptr) idle_.wait(mutex_);
      buffer->busy = true;
      buffer->busy_first_bytes = flush_it || !buffer->empty() ? buffer->first_bytes : offset_bytes;
      buffer->busy_end_bytes = flush_it ? buffer->end_bytes : end;
      buffer->last_use = ++uses_;
    }
    if (flush_it) {
      const Use use(*this, *buffer);
      empty_out(*buffer, /*scatters=*/true);
      continue;
    }
    const std::size_t taken = take(*buffer, offset_bytes, bytes);
    offset_bytes += taken;
    bytes = bytes.subspan(taken);
  }
}

std::size_t Gather::take(Buffer& buffer, std::uint64_t offset_bytes,
                         std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  try {
    taken = fill(buffer, offset_bytes, bytes);
  } catch (...) {
    const Use idle(*this, buffer);
    throw;
  }
  if (buffer.end_bytes < buffer.base_bytes + buffer_bytes_) {
    const Use idle(*this, buffer);
    return taken;
  }
  {
    const MutexLock lock(mutex_);
    buffer.busy_end_bytes = buffer.end_bytes;  // the rest goes to another one
    idle_.notify_all();
  }
  const auto write = [this, &buffer] {
    const Use idle(*this, buffer);
    empty_out(buffer);
  };
  if (!thread_.try_start(write)) write();
  return taken;
}

// The buffer for these bytes, or one that must be flushed first; nullptr: wait.
Gather::Buffer* Gather::choose(std::uint64_t first, std::uint64_t end, bool* flush_it) {
  *flush_it = false;
  Buffer* next = nullptr;    // ends where the bytes begin
  Buffer* unused = nullptr;  // is empty
  Buffer* oldest = nullptr;
  for (Buffer& buffer : buffers_) {
    if (buffer.busy) {
      if (buffer.busy_first_bytes < end && first < buffer.busy_end_bytes) return nullptr;
      continue;
    }
    if (buffer.empty()) {
      if (unused == nullptr || (unused->memory.size() == 0 && buffer.memory.size() != 0))
        unused = &buffer;
      continue;
    }
    if (buffer.first_bytes < end && first < buffer.end_bytes) {
      *flush_it = true;
      return &buffer;
    }
    if (buffer.end_bytes == first) next = &buffer;
    if (oldest == nullptr || buffer.last_use < oldest->last_use) oldest = &buffer;
  }
  if (next != nullptr) return next;
  if (unused != nullptr) return unused;
  *flush_it = oldest != nullptr;
  return oldest;
}

std::size_t Gather::fill(Buffer& buffer, std::uint64_t offset_bytes,
                         std::span<const std::byte> bytes) {
  if (buffer.memory.size() == 0)
    buffer.memory = Memory(buffer_bytes_, /*prefault=*/false, "gathered rows");
  if (buffer.empty()) {
    buffer.base_bytes = round_down(offset_bytes, WriteFile::kBlockBytes);
    buffer.first_bytes = buffer.end_bytes = offset_bytes;
  }
  const std::uint64_t full = buffer.base_bytes + buffer_bytes_;
  const auto size = std::min<std::uint64_t>(bytes.size(), full - offset_bytes);
  std::memcpy(buffer.memory.data() + (offset_bytes - buffer.base_bytes), bytes.data(), size);
  buffer.end_bytes = offset_bytes + size;
  return size;
}

void Gather::empty_out(Buffer& buffer, bool scatters) {
  const std::uint64_t first = buffer.first_bytes;
  const std::uint64_t size = buffer.end_bytes - first;
  buffer.first_bytes = buffer.end_bytes = 0;
  if (size == 0) return;
  const std::span<const std::byte> bytes{buffer.memory.data() + (first - buffer.base_bytes), size};
  if (scatters && size < Scatter::kLargeBytes && scatter_.add(first, bytes)) return;
  scatter_.write(first, bytes);
}

void Gather::flush() {
  thread_.wait();
  for (Buffer& buffer : buffers_) empty_out(buffer);
  scatter_.flush();
}

}  // namespace lowtide
