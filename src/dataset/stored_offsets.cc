#include "dataset/stored_offsets.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kTogether = 64;           // lengths that are summed up
constexpr std::uint64_t kSliceEntries = 1 << 16;  // read at a time
constexpr std::size_t kLookUps = 4096;            // read together
constexpr std::uint64_t kLongest = std::numeric_limits<std::uint16_t>::max();

// Entries as they are stored, as 64-bit numbers; negative ones become huge.
void widen_entries(TokenType type, const std::byte* from, std::span<std::uint64_t> out) {
  with_token_type(type, [&]<typename T>(T /*zero*/) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T entry;
      std::memcpy(&entry, from + i * sizeof(T), sizeof(T));
      out[i] = static_cast<std::uint64_t>(entry);
    }
  });
}

}  // namespace

StoredOffsets::StoredOffsets(std::shared_ptr<const Rows> stored, ReadRows read,
                             std::uint64_t values, bool held)
    : stored_(std::move(stored)),
      read_(std::move(read)),
      type_(token_type(stored_->dtype()).value()),
      samples_(stored_->size() - 1) {
  check_all(values, held);
}

std::uint64_t StoredOffsets::table_bytes(std::uint64_t samples) {
  return samples * sizeof(std::uint16_t) + (samples / kTogether + 1) * sizeof(std::uint64_t);
}

void StoredOffsets::check_all(std::uint64_t values, bool held) {
  if (held) {
    lengths_.reserve(samples_);
    bases_.reserve(samples_ / kTogether + 1);
  }
  std::vector<std::uint64_t> slice;
  for (std::uint64_t first = 0; first <= samples_; first += slice.size()) {
    slice.resize(std::min(kSliceEntries, samples_ + 1 - first));
    read_entries(first, slice);
    for (std::size_t i = 0; i < slice.size(); ++i) {
      const std::uint64_t entry = first + i, offset = slice[i];
      if (entry == 0 && offset != 0) refuse(entry, offset, "but must be 0");
      if (is_negative(offset)) refuse(entry, offset, "but must not be negative");
      if (offset > values) {
        refuse(entry, offset, "but there are only " + std::to_string(values) + " values");
      }
      if (offset < end_) {
        refuse(entry, offset, "less than the entry before it, which is " + std::to_string(end_));
      }
      const std::uint64_t length = offset - end_;
      longest_ = std::max(longest_, length);
      end_ = offset;
      if (!held) continue;
      if (entry > 0) lengths_.push_back(static_cast<std::uint16_t>(std::min(length, kLongest)));
      if (entry % kTogether == 0) bases_.push_back(offset);
    }
  }
  if (longest_ <= kLongest) return;
  lengths_ = {};
  bases_ = {};
}

std::uint64_t StoredOffsets::held_start(std::uint64_t sample) const {
  std::uint64_t start = bases_[sample / kTogether];
  for (std::uint64_t i = sample - sample % kTogether; i < sample; ++i) start += lengths_[i];
  return start;
}

void StoredOffsets::read_entries(std::uint64_t first, std::span<std::uint64_t> out) const {
  std::vector<std::byte> bytes(out.size() * token_bytes(type_));
  std::vector<Read> reads;
  stored_->locate_run(first, out.size(), bytes.data(), reads);
  read_(reads);
  widen_entries(type_, bytes.data(), out);
}

void StoredOffsets::offsets(std::uint64_t first, std::span<std::uint64_t> out) const {
  if (out.empty()) return;
  if (lengths_.empty()) {
    read_entries(first, out);
    return;
  }
  out[0] = held_start(first);
  for (std::size_t i = 1; i < out.size(); ++i) out[i] = out[i - 1] + lengths_[first + i - 1];
}

void StoredOffsets::bounds(std::span<const std::uint64_t> samples, std::span<std::uint64_t> starts,
                           std::span<std::uint64_t> ends) const {
  if (!lengths_.empty()) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      starts[i] = held_start(samples[i]);
      ends[i] = starts[i] + lengths_[samples[i]];
    }
    return;
  }
  const std::size_t pair_bytes = 2 * token_bytes(type_);
  std::vector<std::byte> bytes(std::min(samples.size(), kLookUps) * pair_bytes);
  std::vector<Read> reads;
  std::uint64_t both[2];
  for (std::size_t first = 0; first < samples.size(); first += kLookUps) {
    const std::size_t count = std::min(kLookUps, samples.size() - first);
    reads.clear();
    for (std::size_t i = 0; i < count; ++i) {
      stored_->locate_run(samples[first + i], 2, bytes.data() + i * pair_bytes, reads);
    }
    read_(reads);
    for (std::size_t i = 0; i < count; ++i) {
      widen_entries(type_, bytes.data() + i * pair_bytes, both);
      // The file was checked when it was opened; if it has changed since, nothing may be overrun.
      if (both[0] > both[1] || both[1] > end_ || both[1] - both[0] > longest_) {
        refuse(samples[first + i] + 1, both[1], "but was different when the file was opened");
      }
      starts[first + i] = both[0];
      ends[first + i] = both[1];
    }
  }
}

void StoredOffsets::refuse(std::uint64_t entry, std::uint64_t found, const std::string& why) const {
  throw FormatError(stored_->shards()->path(0) + ": indptr: entry " + std::to_string(entry) +
                    " is " +
                    (is_negative(found) ? std::to_string(static_cast<std::int64_t>(found))
                                        : std::to_string(found)) +
                    ", " + why);
}

bool StoredOffsets::is_negative(std::uint64_t entry) const {
  return token_type_row(type_).kind == 'i' && entry >> 63U != 0;
}

}  // namespace lowtide
