#include "writer/sequential_output.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.h"

namespace lowtide {

SequentialOutput::SequentialOutput(PublishedFile& file, std::span<std::byte> buffer) : file_(file) {
  const std::size_t first =
      static_cast<std::size_t>(round_down(buffer.size() / 2, WriteFile::kBlockBytes));
  half_ = first > 0 ? buffer.first(first) : buffer;
  other_ = first > 0 ? buffer.subspan(first, first) : std::span<std::byte>();
}

void SequentialOutput::pass_on() {
  thread_.wait();
  const std::uint64_t offset_bytes = start_bytes_ + begin_;
  const std::span<const std::byte> bytes = half_.subspan(begin_, end_ - begin_);
  if (other_.empty() ||
      !thread_.try_start([this, offset_bytes, bytes] { file_.write(offset_bytes, bytes); })) {
    return write_now();
  }
  start_bytes_ += half_.size();
  begin_ = end_ = 0;
  std::swap(half_, other_);
}

void SequentialOutput::write_now() {
  if (begin_ == end_) return;
  file_.write(start_bytes_ + begin_, half_.subspan(begin_, end_ - begin_));
  const std::uint64_t next_bytes = offset_bytes();
  start_bytes_ = round_down(next_bytes, WriteFile::kBlockBytes);
  begin_ = end_ = static_cast<std::size_t>(next_bytes - start_bytes_);
}

void SequentialOutput::flush() {
  thread_.wait();
  write_now();
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
