#include <array>
#include <cstring>

#include "core/checked.h"
#include "job/bucket.h"
#include "job/unit_output.h"
#include "os/memory.h"
#include "token_format/token_source.h"

namespace lowtide {
namespace {

constexpr std::size_t kBatch = 256;  // units that are appended at a time
constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kStreamShare = 8;  // of the room, for reading a bucket that exceeds it

[[noreturn]] void refuse_bucket(std::uint64_t bucket) {
  throw FormatError("bucket " + std::to_string(bucket) +
                    " of the run files is damaged; remove the hidden folder of this job, which is "
                    "beside the destination, and run the job again");
}

// The bytes of a bucket from the first to the last, through a small buffer.
class BucketStream {
 public:
  BucketStream(const BucketRead& bucket, std::span<std::byte> buffer)
      : bucket_(bucket), buffer_(buffer) {}

  // Copies the next bytes to `out`, or skips them if it is nullptr. False at the end.
  bool next(std::byte* out, std::uint64_t count) {
    while (count > 0) {
      if (at_ == end_ && !fill()) return false;
      const std::uint64_t now = std::min<std::uint64_t>(count, end_ - at_);
      if (out != nullptr) {
        std::memcpy(out, buffer_.data() + at_, now);
        out += now;
      }
      at_ += now;
      count -= now;
    }
    return true;
  }

 private:
  bool fill() {
    if (chunk_ == bucket_.chunks().size()) return false;
    Extent piece = bucket_.chunks()[chunk_];
    piece.offset_bytes += done_bytes_;
    piece.size_bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(buffer_.size(), piece.size_bytes - done_bytes_));
    bucket_.read_now(piece, buffer_.data());
    at_ = 0;
    end_ = piece.size_bytes;
    done_bytes_ += piece.size_bytes;
    if (done_bytes_ == bucket_.chunks()[chunk_].size_bytes) {
      ++chunk_;
      done_bytes_ = 0;
    }
    return true;
  }

  const BucketRead& bucket_;
  const std::span<std::byte> buffer_;
  std::size_t chunk_ = 0;
  std::uint32_t done_bytes_ = 0;  // of that chunk
  std::size_t at_ = 0, end_ = 0;  // in the buffer
};

class Gatherer {
 public:
  Gatherer(const Shuffle& shuffle, std::uint64_t shard, std::uint64_t memory_bytes, JobWatch& watch)
      : shuffle_(shuffle),
        watch_(watch),
        shard_(shard),
        ragged_(shuffle.shape.ragged),
        sizes_(gather_memory(shuffle, memory_bytes)),
        runs_(run_paths(shuffle),
              {.plan = shuffle.folder.hash(), .buckets = shuffle.buckets.count()}),
        budget_(memory_bytes),
        places_(shuffle) {}

  void run() {
    std::vector<Budget::Entry> entries = sizes_.entries(shuffle_);
    entries.push_back(
        {.what = "where chunks are", .bytes = 2 * runs_.segments() * BucketRead::kChunkBytes});
    claims_ = budget_.claim_all(entries);
    engine_ = open_engine(runs_.files(), {.cache = CacheMode::drop}, budget_, false);
    room_ = Memory(static_cast<std::size_t>(round_down(budget_.free_bytes(), 4096)),
                   /*prefault=*/false, "a bucket");
    const OpenSource source =
        open_same_source(shuffle_.source, shuffle_.stamp, sizes_.source_bytes);
    shuffle_.make_folders();
    output_ = make_output(shuffle_, source, shard_, items(), sizes_);
    take_buckets();
    check_same(source, shuffle_.stamp);
    output_->publish([this] {
      if (!shuffle_.makes_folder()) shuffle_.folder.destination().check_free();
    });
  }

 private:
  static std::vector<std::string> run_paths(const Shuffle& shuffle) {
    std::vector<std::string> paths;
    for (std::uint64_t task = 0; task < shuffle.splits; ++task)
      paths.push_back(shuffle.run_path(task));
    return paths;
  }
  [[nodiscard]] std::uint64_t first_bucket() const { return shard_ * shuffle_.buckets.per_shard(); }
  [[nodiscard]] Range items() const;
  void take_buckets();
  void take(std::uint64_t number, std::span<const std::byte> raw);
  void take_in_passes(std::uint64_t number, const BucketRead& bucket);
  void append_pass(std::uint64_t number, const BucketRead& bucket, Range indexes,
                   std::span<const std::uint64_t> lengths);
  template <typename UnitAt>
  void append_units(std::size_t count, UnitAt unit_at);

  const Shuffle& shuffle_;
  JobWatch& watch_;
  const std::uint64_t shard_;
  const bool ragged_;
  const GatherMemory sizes_;
  const Runs runs_;
  Budget budget_;
  std::vector<Claim> claims_;
  std::unique_ptr<Engine> engine_;
  Memory room_;
  Places places_;
  std::unique_ptr<UnitOutput> output_;
};

// As make_output wants it. The lengths that are stored with ragged units do not count.
Range Gatherer::items() const {
  const Range positions = shuffle_.buckets.shard(shard_);
  const UnitShape& shape = shuffle_.shape;
  if (!ragged_) return positions;
  const auto items_in = [&](std::uint64_t first, std::uint64_t end, std::uint64_t units) {
    const std::uint64_t bytes = runs_.bytes(first, end) - units * kLengthBytes;
    return bytes / std::max<std::uint64_t>(1, shape.item_bytes);
  };
  const std::uint64_t last = first_bucket() + shuffle_.buckets.per_shard();
  const std::uint64_t first = items_in(0, first_bucket(), positions.first);
  return {first, first + items_in(first_bucket(), last, positions.size())};
}

// While one bucket is written, the next one is read: they lie at the two ends of the room.
void Gatherer::take_buckets() {
  std::array<BucketRead, 2> reads{BucketRead(runs_, *engine_), BucketRead(runs_, *engine_)};
  const std::uint64_t buckets = shuffle_.buckets.per_shard();
  const auto begin = [&](std::uint64_t i) {
    BucketRead& read = reads[i % 2];
    const std::uint64_t at = i % 2 == 0 ? 0 : round_down(room_.size() - read.size_bytes(), 64);
    read.begin(room_.data() + at);
  };
  reads[0].look_up(first_bucket());
  for (std::uint64_t i = 0; i < buckets; ++i) {
    BucketRead& now = reads[i % 2];
    const bool fits = now.size_bytes() <= room_.size();
    if (fits && !now.begun()) begin(i);
    if (i + 1 < buckets) {
      BucketRead& next = reads[(i + 1) % 2];
      next.look_up(first_bucket() + i + 1);
      if (fits && next.size_bytes() + 64 <= room_.size() - now.size_bytes()) begin(i + 1);
    }
    if (fits) {
      take(first_bucket() + i, now.wait());
    } else {
      take_in_passes(first_bucket() + i, now);
    }
  }
}

template <typename UnitAt>
void Gatherer::append_units(std::size_t count, UnitAt unit_at) {
  std::array<UnitOutput::Bytes, kBatch> units;
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t now = std::min(kBatch, count - first);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < now; ++i) {
      units[i] = unit_at(first + i);
      bytes += units[i].size();
    }
    output_->append(std::span(units).first(now));
    watch_.advance(bytes);
  }
}

void Gatherer::take(std::uint64_t number, std::span<const std::byte> raw) {
  places_.find(shuffle_.buckets.bucket(number));
  const std::span<std::uint64_t> at = places_.values();
  if (!ragged_) {
    const std::uint64_t unit_bytes = shuffle_.shape.item_bytes;
    if (raw.size() != places_.size() * unit_bytes) refuse_bucket(number);
    for (std::size_t rank = 0; rank < places_.size(); ++rank)
      at[places_.index_of(rank)] = rank * unit_bytes;
    append_units(places_.size(), [&](std::size_t i) { return raw.subspan(at[i], unit_bytes); });
    return;
  }
  const auto length_at = [&](std::uint64_t offset) {
    return load_little<std::uint64_t>(raw.data() + offset);
  };
  std::uint64_t offset = 0;
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    if (!fits_inside(offset, kLengthBytes, raw.size()) ||
        !fits_inside(offset + kLengthBytes, length_at(offset), raw.size())) {
      refuse_bucket(number);
    }
    at[places_.index_of(rank)] = offset;
    offset += kLengthBytes + length_at(offset);
  }
  if (offset != raw.size()) refuse_bucket(number);
  append_units(places_.size(),
               [&](std::size_t i) { return raw.subspan(at[i] + kLengthBytes, length_at(at[i])); });
}

// A bucket of ragged units may exceed the room: their sizes were not known when positions were
// divided. Then it is read once for the lengths, and once for each range of positions that fits.
void Gatherer::take_in_passes(std::uint64_t number, const BucketRead& bucket) {
  if (!ragged_) refuse_bucket(number);
  places_.find(shuffle_.buckets.bucket(number));
  const std::span<std::uint64_t> lengths = places_.values();
  const std::uint64_t stream_bytes = room_.size() / kStreamShare;
  BucketStream stream(bucket, room_.bytes().first(stream_bytes));
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    std::array<std::byte, kLengthBytes> stored;
    if (!stream.next(stored.data(), kLengthBytes)) refuse_bucket(number);
    const auto length = load_little<std::uint64_t>(stored.data());
    if (length > shuffle_.shape.largest_bytes || !stream.next(nullptr, length))
      refuse_bucket(number);
    lengths[places_.index_of(rank)] = length;
    watch_.advance(0);
  }
  for (std::uint64_t first = 0; first < lengths.size();) {
    std::uint64_t end = first;
    std::uint64_t bytes = 0;
    while (end < lengths.size() && lengths[end] <= room_.size() - stream_bytes - bytes)
      bytes += lengths[end++];
    if (end == first) refuse_bucket(number);
    append_pass(number, bucket, {first, end}, lengths);
    first = end;
  }
}

void Gatherer::append_pass(std::uint64_t number, const BucketRead& bucket, Range indexes,
                           std::span<const std::uint64_t> lengths) {
  const std::uint64_t stream_bytes = room_.size() / kStreamShare;
  const std::span<std::byte> kept = room_.bytes().subspan(stream_bytes);
  // The claim "places of units" has room for this beside the lengths.
  std::vector<std::uint64_t> starts(static_cast<std::size_t>(indexes.size() + 1));
  for (std::size_t i = 0; i < indexes.size(); ++i)
    starts[i + 1] = starts[i] + lengths[indexes.first + i];
  BucketStream stream(bucket, room_.bytes().first(stream_bytes));
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    const std::size_t index = places_.index_of(rank);
    const bool wanted = index >= indexes.first && index < indexes.end;
    std::byte* const out = wanted ? kept.data() + starts[index - indexes.first] : nullptr;
    if (!stream.next(nullptr, kLengthBytes) || !stream.next(out, lengths[index]))
      refuse_bucket(number);
    watch_.advance(0);
  }
  append_units(static_cast<std::size_t>(indexes.size()),
               [&](std::size_t i) { return kept.subspan(starts[i], starts[i + 1] - starts[i]); });
}

}  // namespace

void gather(const Shuffle& shuffle, std::uint64_t shard, std::uint64_t memory_bytes,
            JobWatch& watch) {
  Gatherer(shuffle, shard, memory_bytes, watch).run();
}

}  // namespace lowtide
