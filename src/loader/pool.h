// pool.h - the buffers in which batches are delivered. They are leased and reused, because fresh
// pages cost several times as much as the read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "os/memory.h"

namespace lowtide {

// One delivered batch: its rows and their numbers.
struct Buffer {
  Memory memory;
  std::vector<std::uint64_t> samples;
};

class Pool;

// A leased buffer. When destroyed, it returns the buffer to the pool, or frees it if the pool has
// enough. It may outlive everything else.
class Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<Pool> pool, std::unique_ptr<Buffer> buffer)
      : pool_(std::move(pool)), buffer_(std::move(buffer)) {}
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { give_back(); }

  [[nodiscard]] Buffer& operator*() const { return *buffer_; }
  [[nodiscard]] Buffer* operator->() const { return buffer_.get(); }

  std::uint64_t step = 0;
  std::uint64_t epoch = 0;

  // Marks the buffer as the user's.
  void deliver();

 private:
  void give_back() noexcept;

  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Buffer> buffer_;
  bool delivered_ = false;
};

// Never blocks and never refuses: a user who keeps batches gets new ones, which are counted. Any
// thread.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // Has at most `keep` buffers, except for those in use.
  Pool(std::size_t buffer_bytes, std::size_t samples, std::size_t keep);
  void keep(std::size_t buffers);

  [[nodiscard]] Lease take();

  // Bytes of delivered buffers that still exist, except for the consumer's current one.
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  friend class Lease;
  void give_back(std::unique_ptr<Buffer> buffer, bool delivered) noexcept;

  const std::size_t buffer_bytes_, samples_;
  const int pid_;
  mutable std::mutex mutex_;
  std::size_t keep_;
  std::vector<std::unique_ptr<Buffer>> free_;
  std::size_t alive_ = 0;
  std::size_t delivered_ = 0;
};

}  // namespace lowtide
