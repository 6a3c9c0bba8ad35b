#include "job/units.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/token_type.h"
#include "writer/store_tokens.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kStarts = 4096;  // offsets that are read at a time

[[noreturn]] void refuse_offset(std::uint64_t entry, const std::string& value,
                                const std::string& why) {
  throw FormatError("offsets: entry " + std::to_string(entry) + " is " + value + ", but " + why);
}

}  // namespace

Units::Units(const OpenSource& source, Unit unit, std::uint64_t block_size) : source_(source) {
  if (!source.tokens) {
    if (unit != Unit::row) {
      throw std::invalid_argument("unit: an array has rows, not " + std::string(unit_word(unit)) +
                                  "s; those are parts of token files");
    }
    const Array& array = *source.array;
    if (array.shape().empty()) throw std::invalid_argument("an array without axes has no rows");
    ragged_ = source.offsets.has_value();
    size_ = ragged_ ? source.offsets->rows() - std::min<std::uint64_t>(1, source.offsets->rows())
                    : array.rows();
    values_ = array.rows();
    item_bytes_ = stride_bytes_ = array.row_bytes();
    return;
  }
  const Tokens& tokens = *source.tokens;
  const std::uint64_t token_size = tokens.dtype().itemsize_bytes;
  if (unit == Unit::document) {
    if (!tokens.documents()) {
      throw std::invalid_argument("unit: " + tokens.format() +
                                  " files do not record where documents start; convert them to a "
                                  "format that does, with their eot");
    }
    ragged_ = true;
    size_ = *tokens.documents();
    values_ = tokens.size();
    item_bytes_ = token_size;
    return;
  }
  if (unit == Unit::row) {
    throw std::invalid_argument(
        "unit: tokens have no rows; shuffle their documents or windows, or open them as an array");
  }
  if (block_size == 0) throw std::invalid_argument("block_size must be at least 1 for windows");
  if (block_size >= tokens.size()) {
    throw std::invalid_argument("block_size: a window of " + std::to_string(block_size) +
                                " + 1 tokens does not fit into a stream of " +
                                std::to_string(tokens.size()) + " tokens");
  }
  block_size_ = block_size;
  size_ = (tokens.size() - 1) / block_size;
  stride_bytes_ = block_size * token_size;
  item_bytes_ = stride_bytes_ + token_size;
}

UnitShape Units::measure() const {
  UnitShape shape{.units = size_, .ragged = ragged_, .item_bytes = item_bytes_};
  if (!ragged_) {
    shape.total_bytes = size_ * item_bytes_;
    shape.largest_bytes = item_bytes_;
    return shape;
  }
  std::vector<std::uint64_t> starts;
  std::uint64_t before = 0;
  std::uint64_t largest = 0;
  for (std::uint64_t first = 0; first <= size_; first += starts.size()) {
    starts.resize(static_cast<std::size_t>(std::min(kStarts, size_ + 1 - first)));
    read_starts(first, starts);
    if (first == 0 && starts[0] != 0) refuse_offset(0, std::to_string(starts[0]), "must be 0");
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (starts[i] < before) {
        refuse_offset(first + i, std::to_string(starts[i]),
                      "the one before it is " + std::to_string(before));
      }
      if (starts[i] > values_) {
        refuse_offset(first + i, std::to_string(starts[i]),
                      "there are only " + std::to_string(values_) + " values");
      }
      largest = std::max(largest, starts[i] - before);
      before = starts[i];
    }
  }
  shape.total_bytes = before * item_bytes_;
  shape.largest_bytes = largest * item_bytes_;
  return shape;
}

void Units::read_starts(std::uint64_t first, std::span<std::uint64_t> out) const {
  if (source_.tokens) {
    // A signed and an unsigned view of one type of integer are allowed; offsets are never negative.
    source_.tokens->document_offsets(first,
                                     {reinterpret_cast<std::int64_t*>(out.data()), out.size()});
    return;
  }
  const Array& offsets = *source_.offsets;
  const std::optional<TokenType> type = token_type(offsets.dtype());
  if (!type || offsets.shape().size() != 1) {
    throw std::invalid_argument("offsets: expected little-endian integers on one axis, found " +
                                offsets.dtype().descr() + " on " +
                                std::to_string(offsets.shape().size()) + " axes");
  }
  std::vector<std::byte> stored(out.size() * token_bytes(*type));
  offsets.read(first, out.size(), stored);
  if (const auto wrong = first_unfit(*type, stored.data(), out.size(), TokenType::i64))
    refuse_offset(first + *wrong, "above 2^63", "there are not so many values");
  store_tokens(*type, stored.data(), out.size(), TokenType::i64,
               reinterpret_cast<std::byte*>(out.data()));
}

void Units::read_items(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  if (source_.tokens) {
    source_.tokens->read(first, count, out);
  } else {
    source_.array->read(first, count, out);
  }
}

std::size_t Units::load(std::uint64_t first, std::uint64_t most, std::span<std::byte> room) {
  room_ = room.data();
  if (!ragged_) {
    const std::uint64_t overlap = item_bytes_ - stride_bytes_;
    const std::uint64_t fit =
        stride_bytes_ == 0 ? most : std::min(most, (room.size() - overlap) / stride_bytes_);
    const std::span<std::byte> out = room.first(fit * stride_bytes_ + overlap);
    if (block_size_ == 0) {
      read_items(first, fit, out);
    } else {
      read_items(first * block_size_, fit * block_size_ + 1, out);
    }
    return static_cast<std::size_t>(fit);
  }
  starts_.clear();
  starts_.reserve(static_cast<std::size_t>(most + 1));  // what is never touched takes no memory
  const std::uint64_t most_items = room.size() / std::max<std::uint64_t>(1, item_bytes_);
  std::size_t fit = 0;
  while (fit < most) {  // starts_ has all but the end of the last unit that was asked for
    const std::size_t known = starts_.size();
    starts_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(known + kStarts, most + 1)));
    read_starts(first + known, std::span(starts_).subspan(known));
    while (fit + 1 < starts_.size() && starts_[fit + 1] - starts_[0] <= most_items) ++fit;
    if (fit + 1 < starts_.size()) break;
  }
  const std::uint64_t items = starts_[fit] - starts_[0];
  read_items(starts_[0], items, room.first(items * item_bytes_));
  return fit;
}

}  // namespace lowtide
