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
  for (const TokenExtent& extent : layout.extents) {
    starts_.push_back({tokens_, extent.offset_bytes, number});
    tokens_ += extent.tokens;
    if (tokens_ > kMostTokens) {
      throw FormatError(layout.data_path + ": expected at most 2^60 tokens in total, found more");
    }
  }
  starts_.push_back({tokens_, 0, number + 1});
}

std::uint64_t TokenStream::held_bytes() const {
  return shards_->held_bytes() + first_of_.capacity() * sizeof(first_of_[0]) +
         starts_.capacity() * sizeof(Start);
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

void TokenStream::locate(std::uint64_t first, std::uint64_t count, std::uint32_t first_shard,
                         std::byte* into, std::vector<Read>& out) const {
  const std::uint64_t item = item_bytes();
  for (std::size_t at = start_before(first); count > 0; ++at) {
    const Start& start = starts_[at];
    std::uint64_t here = std::min(count, starts_[at + 1].first_token - first);
    count -= here;
    while (here > 0) {
      const std::uint64_t now = std::min(here, kMostRunBytes / item);
      const std::uint64_t offset_bytes = start.offset_bytes + (first - start.first_token) * item;
      out.push_back({.from = {.offset_bytes = offset_bytes,
                              .size_bytes = static_cast<std::uint32_t>(now * item),
                              .shard = first_shard + start.shard},
                     .into = into});
      into += now * item;
      first += now;
      here -= now;
    }
  }
}

std::uint64_t TokenStream::most_reads(std::uint64_t count) const {
  // The most extents that this many tokens touch, wherever they start. Two indexes walk along
  // them, because looking at every token would take as long as reading the data.
  std::uint64_t most = 1;
  for (std::size_t first = 0, last = 0; first + 1 < starts_.size(); ++first) {
    const std::uint64_t farthest =
        starts_[first + 1].first_token - 1;  // the last token of this extent
    while (last + 2 < starts_.size() && starts_[last + 1].first_token < farthest + count) ++last;
    most = std::max<std::uint64_t>(most, last - first + 1);
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
