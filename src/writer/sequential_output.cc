#include "writer/sequential_output.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"

namespace lowtide {

void SequentialOutput::flush() {
  if (begin_ == end_) return;
  file_.write(start_bytes_ + begin_, buffer_.subspan(begin_, end_ - begin_));
  const std::uint64_t next_bytes = offset_bytes();
  start_bytes_ = round_down(next_bytes, WriteFile::kBlockBytes);
  begin_ = end_ = static_cast<std::size_t>(next_bytes - start_bytes_);
}

std::span<std::byte> SequentialOutput::room() {
  if (end_ == buffer_.size()) flush();
  return buffer_.subspan(end_);
}

void SequentialOutput::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> here = room();
    const std::size_t count = std::min(here.size(), bytes.size());
    std::memcpy(here.data(), bytes.data(), count);
    filled(count);
    bytes = bytes.subspan(count);
  }
}

void SequentialOutput::append_zeros(std::uint64_t count) {
  while (count > 0) {
    const std::span<std::byte> here = room();
    const std::uint64_t now = std::min<std::uint64_t>(here.size(), count);
    std::memset(here.data(), 0, now);
    filled(now);
    count -= now;
  }
}

}  // namespace lowtide
