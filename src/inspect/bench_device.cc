#include "inspect/bench_device.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/checked.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/outcome.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "order/mix.h"
#include "os/memory.h"
#include "os/ring.h"

namespace lowtide {
namespace {

constexpr unsigned kRandomDepth = 128;
constexpr unsigned kSequentialDepth = 8;
constexpr unsigned kThreads = 64;
constexpr std::uint64_t kMostBlockBytes = 128 << 10;  // the most that one random read fetches
constexpr std::uint64_t kSequentialBytes = 1 << 20;
constexpr std::uint64_t kSetBytes = 16 << 20;  // the bytes in one set of reads for the pool
constexpr std::uint64_t kSetReads = 512;
constexpr std::uint64_t kMostBounceBytes = 512 << 10;

// The reads of a pattern, by index.
class Pattern {
 public:
  Pattern(const File& file, const SampleGrid& grid, bool random)
      : grid_(grid),
        random_(random),
        alignment_(file.direct_alignment()->offset_bytes),
        end_bytes_(round_down(file.shard().size_bytes, alignment_)),
        block_bytes_(random ? std::min(grid.size_bytes, kMostBlockBytes) : kSequentialBytes) {}

  // The buffer size that fits any of them.
  [[nodiscard]] std::uint64_t most_bytes() const {
    return random_ ? round_up(block_bytes_, alignment_) + alignment_ : block_bytes_;
  }
  // Empty if the file is shorter than one sector.
  [[nodiscard]] Extent at(std::uint64_t number) const {
    const std::uint64_t first = random_ ? drawn(number) : in_order(number);
    const std::uint64_t start = std::min(round_down(first, alignment_), end_bytes_);
    const std::uint64_t end = std::min(round_up(first + block_bytes_, alignment_), end_bytes_);
    return {start, static_cast<std::uint32_t>(end - start), 0};
  }
  // How many bytes of a sample one read fetches.
  [[nodiscard]] double share() const {
    return static_cast<double>(block_bytes_) / static_cast<double>(grid_.size_bytes);
  }

 private:
  [[nodiscard]] std::uint64_t drawn(std::uint64_t number) const {
    const std::uint64_t sample = draw(kGolden64, 2 * number) % grid_.count;
    const std::uint64_t blocks = grid_.size_bytes / block_bytes_;
    const std::uint64_t block = draw(kGolden64, 2 * number + 1) % blocks;
    return grid_.first_bytes + sample * grid_.stride_bytes + block * block_bytes_;
  }
  [[nodiscard]] std::uint64_t in_order(std::uint64_t number) const {
    const std::uint64_t all = std::max<std::uint64_t>(1, end_bytes_ / block_bytes_);
    return number % all * block_bytes_;
  }

  SampleGrid grid_;
  bool random_;
  std::uint64_t alignment_;
  std::uint64_t end_bytes_;  // a whole number of sectors: a direct read must not go further
  std::uint64_t block_bytes_;
};

void count_result(const Ring::Done& done, const File& file, DeviceRate* rate) {
  if (done.result < 0) throw IoError(-done.result, "read", file.shard().path);
  ++rate->reads;
  rate->bytes += static_cast<std::uint64_t>(done.result);
}

void measure_ring(const File& file, const Pattern& pattern, unsigned depth, const TimeLimit& limit,
                  DeviceRate* rate) {
  const std::uint64_t slot_bytes = round_up(pattern.most_bytes(), 4096);
  const Memory memory(slot_bytes * depth, true);  // outlives the ring, which writes into it
  Ring ring(depth);
  std::vector<Ring::Done> done(depth);
  std::uint64_t number = 0;
  const auto start_read = [&](std::uint64_t slot) {
    const Extent extent = pattern.at(number++);
    if (!ring.read(file.direct_fd(), extent.offset_bytes, memory.data() + slot * slot_bytes,
                   extent.size_bytes, slot)) {
      throw IoError(EBUSY, "io_uring", file.shard().path, extent.offset_bytes);
    }
  };
  const Stopwatch watch(limit);
  for (std::uint64_t slot = 0; slot < depth; ++slot) start_read(slot);
  while (ring.in_flight() > 0) {
    if (const int err = ring.submit(1); err != 0) {
      throw IoError(err, "io_uring_enter", file.shard().path);
    }
    const std::size_t count = ring.reap(done.data(), done.size());
    const bool over = watch.over();
    for (std::size_t i = 0; i < count; ++i) {
      count_result(done[i], file, rate);
      if (!over) start_read(done[i].tag);
    }
  }
  rate->seconds = watch.seconds();
}

// The pool sorts a set of reads and merges neighbours. What counts is what it then requests from
// the device.
void measure_threads(const std::shared_ptr<Files>& files, const Pattern& pattern,
                     const TimeLimit& limit, DeviceRate* rate) {
  const std::uint64_t slot_bytes = round_up(pattern.most_bytes(), 4096);
  const std::uint64_t slots = std::clamp<std::uint64_t>(kSetBytes / slot_bytes, 8, kSetReads);
  const std::uint64_t bounce_bytes = std::min(slot_bytes, kMostBounceBytes) + 2 * 4096;
  const Memory memory(slot_bytes * slots, true);
  const std::unique_ptr<Lane> lane = make_pread_lane(
      files,
      {.access = Access::direct, .width = kThreads, .bounce_bytes = kThreads * bounce_bytes});
  std::vector<Read> reads(slots);
  Waiter set;
  std::uint64_t number = 0;
  const Stopwatch watch(limit);
  do {
    for (std::uint64_t slot = 0; slot < slots; ++slot) {
      reads[slot] = {pattern.at(number++), memory.data() + slot * slot_bytes};
    }
    set.reads = reads;
    lane->submit(set);
    const Outcome outcome = set.wait();
    if (!outcome.ok()) {
      throw_outcome(outcome, reads[outcome.read], files->shards()->path(0), "");
    }
  } while (!watch.over());
  rate->seconds = watch.seconds();
  rate->reads = lane->traffic().reads;
  rate->bytes = lane->traffic().bytes_read;
}

}  // namespace

DeviceRate measure_device(const std::shared_ptr<Files>& files, const SampleGrid& grid, bool random,
                          const TimeLimit& limit) {
  DeviceRate rate;
  const std::shared_ptr<File> file = files->open(0);
  if (!file->direct_alignment() || file->direct_fd() < 0) {
    rate.why_not = "this file system has no direct I/O, so only the page cache could be measured";
    return rate;
  }
  const Pattern pattern(*file, grid, random);
  if (pattern.at(0).size_bytes == 0) {
    rate.why_not = "the file is shorter than one direct read";
    return rate;
  }
  const bool ring = Ring::probe().empty();
  const unsigned width = !ring ? kThreads : random ? kRandomDepth : kSequentialDepth;
  rate.how = std::to_string(width) + (ring ? " direct reads of " : " threads, direct reads of ") +
             format_bytes(pattern.at(0).size_bytes) + (ring ? " in flight" : "");
  if (ring) {
    measure_ring(*file, pattern, width, limit, &rate);
  } else {
    measure_threads(files, pattern, limit, &rate);
  }
  rate.samples = random ? static_cast<double>(rate.reads) * pattern.share()
                        : static_cast<double>(rate.bytes) / static_cast<double>(grid.stride_bytes);
  return rate;
}

}  // namespace lowtide
