#include "inspect/hot_range.h"

#include <algorithm>
#include <utility>

#include "os/memory.h"
#include "os/residency.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kHotZoneBytes = 4 << 20;  // two large folios, so that each is evicted whole
constexpr std::uint64_t kReachBytes = 2 * kHotZoneBytes;  // the read-ahead of tuned disks
constexpr std::uint64_t kMostZones = 16384;
constexpr std::uint64_t kHotReadBytes = 1 << 20;

}  // namespace

ByteRange find_hot_range(const File& file) {
  const std::uint64_t all = file.shard().size_bytes;
  std::uint64_t zone = kHotZoneBytes;
  while (all / zone >= kMostZones) zone *= 2;
  ByteRange best, now;
  for (std::uint64_t at = 0; at < all; at += zone) {
    const std::uint64_t size = std::min(zone, all - at);
    const auto known = residency(file, at, size);
    if (!known) return {};
    if (known->cached_bytes < size) {
      now = {at + size, 0};
      continue;
    }
    now.size_bytes += size;
    if (now.size_bytes > best.size_bytes) best = now;
  }
  if (best.first_bytes + best.size_bytes < all) {
    best.size_bytes -= std::min(best.size_bytes, kReachBytes);
  }
  return best;
}

WarmRange::WarmRange(std::shared_ptr<const File> file, std::uint64_t size_bytes, bool cold,
                     const std::function<bool()>& stop)
    : file_(std::move(file)) {
  const std::uint64_t all = file_->shard().size_bytes;
  const std::uint64_t end = std::min(size_bytes, all);
  // Reads at the end of the range can trigger read-ahead beyond it.
  for (std::uint64_t zone = 0; zone < std::min(end + kReachBytes, all); zone += kHotZoneBytes) {
    const auto before = residency(*file_, zone, kHotZoneBytes);
    if (!before) stays_ = true;
    if (before && (cold || before->cached_bytes == 0)) brought_in_bytes_.push_back(zone);
  }
  file_->advise(Advice::random);  // prevents read-ahead beyond the end
  const Memory buffer(kHotReadBytes);
  for (std::uint64_t at = 0; at < end; at += kHotReadBytes) {
    if (stop && stop()) return;
    file_->read_exact(at, buffer.bytes().first(std::min(kHotReadBytes, end - at)));
  }
  range_.size_bytes = end < all ? end - std::min(end, kReachBytes) : end;
}

WarmRange::~WarmRange() {
  if (stays_) return;
  for (const std::uint64_t zone : brought_in_bytes_) {
    file_->advise(Advice::dont_need, zone, kHotZoneBytes);
  }
}

}  // namespace lowtide
