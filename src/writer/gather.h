// gather.h - small writes become large ones.
//
// Bytes wait in one of a few buffers until it is full, until bytes come that overlap it, or until
// flush(). A buffer is aligned in memory as its bytes are in the file, so that full ones bypass the
// page cache; a thread writes one of them while the next one is filled. Each of several threads
// that write ahead in places of their own fills a buffer of its own. If there are more places than
// buffers, what is in the oldest one goes to the Scatter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/mutex.h"
#include "os/memory.h"
#include "writer/published_file.h"
#include "writer/scatter.h"
#include "writer/write_thread.h"

namespace lowtide {

// Any thread. Of two writes to the same byte, the one that began later wins; if they run at the
// same time, either.
class Gather {
 public:
  static constexpr std::size_t kBuffers = 8;

  // Holds kBuffers * buffer_bytes once they are used; buffer_bytes is a multiple of
  // WriteFile::kBlockBytes. What the Scatter holds comes from the budget. Both must outlive it.
  Gather(PublishedFile& file, std::uint64_t buffer_bytes, Budget& budget);

  // Throws the IoError of the file. What then becomes of the bytes does not matter, because such a
  // file is never published.
  void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  // Passes everything to the file. No write may run meanwhile.
  void flush();

  // As in Scatter.
  void own_range(std::uint64_t first_bytes, std::uint64_t end_bytes) {
    scatter_.own_range(first_bytes, end_bytes);
  }

  [[nodiscard]] std::uint64_t bytes_written() const { return scatter_.bytes_written(); }
  [[nodiscard]] std::uint64_t writes() const { return scatter_.writes(); }

 private:
  struct Buffer {
    Memory memory;
    // The bytes [first, end) of the file are at memory[first - base].
    std::uint64_t base_bytes = 0;
    std::uint64_t first_bytes = 0;
    std::uint64_t end_bytes = 0;
    // While a thread uses it, it belongs to that thread, and this is what its bytes will cover.
    bool busy = false;
    std::uint64_t busy_first_bytes = 0;
    std::uint64_t busy_end_bytes = 0;
    std::uint64_t last_use = 0;

    [[nodiscard]] bool empty() const { return first_bytes == end_bytes; }
  };
  class Use;
  [[nodiscard]] Buffer* choose(std::uint64_t first, std::uint64_t end, bool* flush_it)
      LOWTIDE_REQUIRES(mutex_);
  // Copies bytes into a busy buffer until it is full, and returns how many. A full one is written,
  // on the thread if that has nothing to do.
  std::size_t take(Buffer& buffer, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  std::size_t fill(Buffer& buffer, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  // `scatters`: a short one may wait for others.
  void empty_out(Buffer& buffer, bool scatters = false);

  const std::uint64_t buffer_bytes_;
  Scatter scatter_;
  Mutex mutex_;  // never held while bytes are copied or written
  CondVar idle_;
  std::uint64_t uses_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::array<Buffer, kBuffers> buffers_;  // the busy flags are guarded by mutex_, see Buffer
  WriteThread thread_;                    // the last one, because it uses the others
};

}  // namespace lowtide
