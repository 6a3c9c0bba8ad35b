#include <algorithm>

#include "core/hash.h"
#include "face/array_impl.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kReads = 64;
constexpr std::uint64_t kReadBytes = 256;  // at most, per read

// The number-th of kReads numbers from 0 to `last`. Not last * number / kSteps, which can overflow.
std::uint64_t spread(std::uint64_t number, std::uint64_t last) {
  constexpr std::uint64_t kSteps = kReads - 1;
  return last / kSteps * number + last % kSteps * number / kSteps;
}

}  // namespace

std::uint64_t Array::Impl::fingerprint() {
  if (const std::uint64_t known = fingerprint_.load(std::memory_order_relaxed)) return known;
  std::uint64_t hash = rows->layout_hash();
  const Rows elements = rows->flat();  // in file order; of chunks in C order, as their copy has it
  const std::uint64_t item = elements.sample_bytes();
  if (elements.data_bytes() > 0) {
    const std::uint64_t count =
        std::clamp<std::uint64_t>(kReadBytes / item, 1, std::min(kReadBytes, elements.size()));
    const std::uint64_t size_bytes = std::min(kReadBytes, item);
    std::vector<std::byte> sampled(kReads * count * size_bytes);
    std::vector<Read> reads;
    for (std::uint64_t i = 0; i < kReads; ++i) {
      // The first elements, the last ones and some between.
      const std::uint64_t first = spread(i, elements.size() - count);
      std::byte* const target = sampled.data() + i * count * size_bytes;
      if (count > 1 || size_bytes == item) {
        elements.locate_run(first, count, target, reads);
      } else {
        elements.locate_inside(spread(i, item - size_bytes), size_bytes, {&first, 1}, {&target, 1},
                               reads);
      }
    }
    // Some may cross two files. Rows that do not touch are several reads, but the engine merges
    // them.
    if (!elements.has_gaps() && elements.chunks() == nullptr) {
      reads.resize(std::min<std::size_t>(reads.size(), kReads));
    }
    holder->store_of_run()->read(reads);
    hash = hash_with(hash, std::span<const std::byte>(sampled));
  }
  fingerprint_.store(hash, std::memory_order_relaxed);
  return hash;
}

std::uint64_t Array::fingerprint() const {
  return impl_->fingerprint();
}

}  // namespace lowtide
