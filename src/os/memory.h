// memory.h - anonymous memory straight from the kernel: page aligned and returned at once when
// freed, so that the process's RssAnon shows exactly what we hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lowtide {

// Owns its pages. From 2 MiB on, it starts on a 2 MiB boundary and asks for huge pages. Never has
// more resident than its size rounded up to 4 KiB.
class Memory {
 public:
  Memory() = default;
  // Throws NoMemory, which names `what_for`. With `prefault`, the pages are resident when the
  // constructor returns, so that the first write does not fault; otherwise they appear on touch.
  explicit Memory(std::size_t size_bytes, bool prefault = false,
                  const char* what_for = "read buffers");
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace lowtide
