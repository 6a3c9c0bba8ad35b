#include "job/units.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/token_type.h"
#include "token_format/tokens.h"
#include "writer/store_tokens.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kStarts = 4096;         // offsets that are read at a time
constexpr std::uint64_t kMeasured = 128 << 10;  // tokens that are searched at a time

[[noreturn]] void refuse_offset(std::uint64_t entry, const std::string& value,
                                const std::string& why) {
  throw FormatError("offsets: entry " + std::to_string(entry) + " is " + value + ", but " + why);
}

}  // namespace

Units::Units(const OpenSource& source, Unit unit, std::uint64_t block_size, const UnitShape* shape)
    : source_(source) {
  if (shape != nullptr && shape->cuts) cuts_ = *shape->cuts;
  if (!source.tokens) {
    if (unit != Unit::row) {
      throw std::invalid_argument("unit: an array has rows, not " + std::string(unit_word(unit)) +
                                  "s; only token files have those");
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
    if (!tokens.documents() && !tokens.eot()) {
      throw std::invalid_argument("unit: " + tokens.format() +
                                  " files do not record where documents start; give eot, the "
                                  "token between them");
    }
    ragged_ = true;
    if (!tokens.documents()) finder_.emplace(tokens);
    if (finder_ && shape != nullptr && cuts_.starts.empty())
      throw std::invalid_argument("this is not the text of a plan: it lacks \"cuts\"");
    size_ = tokens.documents().value_or(0);
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
  if (finder_) return measure_cut();
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
    refuse_offset(first + *wrong, "2^63 or more",
                  "there are only " + std::to_string(values_) + " values");
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

UnitShape Units::measure_cut() const {
  UnitShape shape{.ragged = true, .item_bytes = item_bytes_, .cuts = Cuts{}};
  std::vector<std::byte> block(static_cast<std::size_t>(kMeasured * item_bytes_));
  std::uint64_t begin = 0;
  std::uint64_t largest = 0;
  const auto add = [&](std::uint64_t end) {
    if (end == begin) return true;  // nothing is before the first document
    shape.cuts->add(shape.units++, begin);
    largest = std::max(largest, end - begin);
    begin = end;
    return true;
  };
  for (std::uint64_t first = 0; first < values_; first += kMeasured) {
    const std::uint64_t count = std::min(kMeasured, values_ - first);
    const std::span<std::byte> out = std::span(block).first(count * item_bytes_);
    read_items(first, count, out);
    finder_->scan(out, [&](std::size_t cut) { return add(first + cut); });
  }
  add(values_);
  shape.total_bytes = values_ * item_bytes_;
  shape.largest_bytes = largest * item_bytes_;
  return shape;
}

// Finds where a document begins, from the nearest one that is known.
void Units::seek_cut(std::uint64_t first, std::span<std::byte> room) {
  const std::size_t known = static_cast<std::size_t>(
      std::min<std::uint64_t>(first / cuts_.every, cuts_.starts.size() - 1));
  next_ = known * cuts_.every;
  next_token_ = cuts_.starts[known];
  const std::uint64_t most = room.size() / item_bytes_;
  for (std::uint64_t at = next_token_; next_ < first && at < values_;) {
    const std::uint64_t count = std::min(most, values_ - at);
    read_items(at, count, room.first(count * item_bytes_));
    finder_->scan(room.first(count * item_bytes_), [&](std::size_t cut) {
      if (at + cut == next_token_) return true;
      next_token_ = at + cut;
      return ++next_ < first;
    });
    at += count;
  }
}

std::size_t Units::load_cut(std::uint64_t first, std::uint64_t most, std::span<std::byte> room) {
  if (first != next_) seek_cut(first, room);
  const std::uint64_t begin = next_token_;
  const std::uint64_t count = std::min<std::uint64_t>(room.size() / item_bytes_, values_ - begin);
  read_items(begin, count, room.first(count * item_bytes_));
  starts_.assign(1, begin);
  starts_.reserve(static_cast<std::size_t>(most + 1));
  finder_->scan(room.first(count * item_bytes_), [&](std::size_t cut) {
    if (begin + cut != starts_.back()) starts_.push_back(begin + cut);
    return starts_.size() <= most;
  });
  if (starts_.size() <= most && begin + count == values_ && starts_.back() != values_)
    starts_.push_back(values_);
  next_ = first + starts_.size() - 1;
  next_token_ = starts_.back();
  return starts_.size() - 1;
}

std::size_t Units::load(std::uint64_t first, std::uint64_t most, std::span<std::byte> room) {
  room_ = room.data();
  if (finder_) return load_cut(first, most, room);
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

void Cuts::add(std::uint64_t number, std::uint64_t start) {
  if (number % every != 0) return;
  if (starts.size() == kMost) {
    for (std::size_t i = 0; 2 * i < kMost; ++i) starts[i] = starts[2 * i];
    starts.resize(kMost / 2);
    every *= 2;
    if (number % every != 0) return;
  }
  starts.push_back(start);
}

std::string Cuts::text() const {
  std::string text = std::to_string(every);
  std::uint64_t before = 0;
  for (const std::uint64_t start : starts) {
    text += " " + std::to_string(start - before);
    before = start;
  }
  return text;
}

Cuts Cuts::parse(const std::string& text) {
  Cuts cuts;
  std::uint64_t before = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::uint64_t number = parse_number("cuts", std::string_view(text).substr(at, end - at));
    if (at == 0) {
      cuts.every = number;
    } else {
      before += number;
      cuts.starts.push_back(before);
    }
    at = end + 1;
  }
  if (cuts.every == 0 || cuts.starts.empty())
    throw std::invalid_argument("this is not the text of a plan: it lacks where documents begin");
  return cuts;
}

CutFinder::CutFinder(const Tokens& tokens)
    : item_bytes_(tokens.dtype().itemsize_bytes), begins_(eot_begins(tokens.format())) {
  const TokenType type = token_type(tokens.dtype()).value();
  const std::uint64_t eot = tokens.eot().value();
  const auto* const from = reinterpret_cast<const std::byte*>(&eot);
  if (first_unfit(TokenType::u64, from, 1, type)) {
    throw std::invalid_argument("eot: " + std::to_string(eot) + " does not fit " +
                                std::string(token_type_name(type)));
  }
  store_tokens(TokenType::u64, from, 1, type, reinterpret_cast<std::byte*>(&eot_));
}

}  // namespace lowtide
