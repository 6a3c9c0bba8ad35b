#include "dataset/token_stream.h"

#include <algorithm>
#include <stdexcept>

#include "core/hash.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMostRunBytes = std::uint64_t{1} << 30;

}  // namespace

TokenStream::TokenStream(const std::vector<TokenLayout>& layouts) {
  if (layouts.empty()) throw std::invalid_argument("tokens: at least one file is needed");
  for (const TokenLayout& layout : layouts) add(layout, {layout.data_path});
}

void TokenStream::add(const TokenLayout& layout, const Shard& shard) {
  if (first_of_.empty()) {
    format_ = layout.format;
    eot_begins_ = layout.eot_begins;
    dtype_ = layout.dtype;
    type_ = token_type(dtype_).value();
  } else {
    starts_.pop_back();  // the end mark
  }
  const auto and_first = [&] { return ", but " + shards_->path(0) + " has "; };
  if (layout.format != format_) {
    throw FormatError(layout.data_path + ": format is " + layout.format + and_first() + format_);
  }
  if (!(layout.dtype == dtype_)) {
    throw FormatError(layout.data_path + ": dtype is " + layout.dtype.descr() + and_first() +
                      dtype_.descr());
  }
  const auto number = static_cast<std::uint32_t>(shards_->size());
  shards_->add(shard);
  first_of_.push_back(tokens_);
  const auto add_start = [&](std::uint64_t offset_bytes, std::uint64_t tokens) {
    starts_.push_back({tokens_, offset_bytes, number});
    tokens_ += tokens;
    if (tokens_ > kMostTokens) {
      throw FormatError(layout.data_path + ": expected at most 2^60 tokens in total, found more");
    }
  };
  for (const TokenExtent& extent : layout.extents) add_start(extent.offset_bytes, extent.tokens);
  if (layout.records) {
    records_.resize(number);
    records_.push_back(layout.records);
    if (layout.records->tokens() > 0) add_start(0, layout.records->tokens());
  }
  starts_.push_back({tokens_, 0, number + 1});
}

std::uint64_t TokenStream::held_bytes() const {
  std::uint64_t bytes = shards_->held_bytes() + first_of_.capacity() * sizeof(first_of_[0]) +
                        starts_.capacity() * sizeof(Start);
  for (const auto& records : records_) {
    bytes += sizeof(records);
    if (records) bytes += sizeof(*records) + records->held_bytes();
  }
  return bytes;
}

std::size_t TokenStream::start_before(std::uint64_t token) const {
  const auto after = std::upper_bound(
      starts_.begin(), starts_.end(), token,
      [](std::uint64_t wanted, const Start& start) { return wanted < start.first_token; });
  return static_cast<std::size_t>(after - starts_.begin() - 1);
}

std::string TokenStream::path_of(std::uint64_t token) const {
  return shards_->path(starts_[start_before(token)].shard);
}

const TokenRecords* TokenStream::records_at(std::size_t start) const {
  const std::uint32_t shard = starts_[start].shard;
  return shard < records_.size() ? records_[shard].get() : nullptr;
}

TokenStream::Place TokenStream::place_of(std::uint64_t token) const {
  const std::size_t start = start_before(token);
  const TokenRecords* const records = records_at(start);
  if (records == nullptr) return {start};
  return {start, records->document_of(token - starts_[start].first_token)};
}

TokenStream::Place TokenStream::next(Place place) const {
  if (const TokenRecords* const records = records_at(place.start)) {
    if (place.document + 1 < records->documents()) return {place.start, place.document + 1};
  }
  return {place.start + 1};
}

std::uint64_t TokenStream::first_token(Place place) const {
  const TokenRecords* const records = at_end(place) ? nullptr : records_at(place.start);
  return starts_[place.start].first_token +
         (records != nullptr ? records->first_token(place.document) : 0);
}

std::uint64_t TokenStream::offset_bytes(Place place) const {
  const TokenRecords* const records = records_at(place.start);
  return records != nullptr ? (*records)[place.document].offset_bytes
                            : starts_[place.start].offset_bytes;
}

void TokenStream::locate(std::uint64_t first, std::uint64_t count, std::uint32_t first_shard,
                         std::byte* into, std::vector<Read>& out) const {
  if (count == 0) return;
  const std::uint64_t item = item_bytes();
  for (Place place = place_of(first); count > 0;) {
    const Place after = next(place);
    std::uint64_t here = std::min(count, first_token(after) - first);
    const std::uint64_t from_bytes = offset_bytes(place);
    const std::uint64_t from = first_token(place);
    count -= here;
    while (here > 0) {
      const std::uint64_t now = std::min(here, kMostRunBytes / item);
      out.push_back({.from = {.offset_bytes = from_bytes + (first - from) * item,
                              .size_bytes = static_cast<std::uint32_t>(now * item),
                              .shard = first_shard + starts_[place.start].shard},
                     .into = into});
      into += now * item;
      first += now;
      here -= now;
    }
    place = after;
  }
}

std::uint64_t TokenStream::most_reads(std::uint64_t count) const {
  // The most places that this many tokens touch, wherever they start. Two of them walk along,
  // because looking at every token would take as long as reading the data.
  const auto has_tokens = [&](Place place) {
    return first_token(next(place)) > first_token(place);
  };
  std::uint64_t most = 1;
  std::uint64_t between = 0;  // places with tokens after `first`, up to `last`
  Place last{};
  for (Place first{}; !at_end(first);) {
    const Place after = next(first);
    // The range starts at the last token of this place.
    const std::uint64_t end = first_token(after) - 1 + count;
    if (has_tokens(first)) {
      for (Place further = next(last); !at_end(further) && first_token(further) < end;
           further = next(last)) {
        last = further;
        if (has_tokens(last)) ++between;
      }
      most = std::max(most, between + 1);
    }
    if (last == first) {
      last = after;
    } else if (has_tokens(after)) {
      --between;
    }
    first = after;
  }
  return most + count / (kMostRunBytes / item_bytes());
}

std::uint64_t TokenStream::layout_hash() const {
  std::uint64_t hash = hash_with(0, std::as_bytes(std::span(format_)));
  hash = hash_with(hash, static_cast<std::uint64_t>(type_));
  for (std::size_t shard = 0; shard < first_of_.size(); ++shard) {
    const std::uint64_t end = shard + 1 < first_of_.size() ? first_of_[shard + 1] : tokens_;
    hash = hash_with(hash, end - first_of_[shard]);
  }
  return hash;
}

}  // namespace lowtide
