#include <algorithm>
#include <array>
#include <utility>

#include "core/quote.h"
#include "lowtide/error.h"
#include "token_format/mds.h"
#include "token_format/token_source.h"

namespace lowtide::mds {
namespace {

constexpr std::uint64_t kSizeBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kWindowBytes = 64 * 1024;
constexpr std::uint64_t kEndsWindowBytes = 4096;  // if only the first and the last header are read
constexpr std::uint64_t kMostArrayHeader = 10;    // the type, the axes, a size of 8 bytes

DType type_of_code(std::uint8_t code, const std::string& where) {
  constexpr std::pair<std::uint8_t, std::string_view> kCodes[] = {
      {8, "uint8"},   {9, "int8"},   {16, "uint16"}, {17, "int16"},
      {32, "uint32"}, {33, "int32"}, {64, "uint64"}, {65, "int64"}};
  for (const auto& [known, name] : kCodes) {
    if (code == known) return DType::parse(name);
  }
  throw FormatError(where + ": expected the type code of an integer, found " +
                    std::to_string(code));
}

// A number of tokens, and the bytes that its size takes: the fewest that suffice.
struct SizeWidth {
  std::uint64_t bytes, from, to;
};
constexpr SizeWidth kWidths[] = {{1, 0, 0xff}, {2, 0x100, 0xffff}, {4, 0x10000, 0xffffffff}};

}  // namespace

std::span<const std::byte> Pieces::at(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  if (offset_bytes < first_ || offset_bytes + size_bytes > first_ + held_.size()) {
    held_.resize(std::min(std::max(window_bytes_, size_bytes), file_.file_bytes - offset_bytes));
    if (!held_.empty()) file_.read(offset_bytes, held_);
    first_ = offset_bytes;
  }
  return std::span(held_).subspan(offset_bytes - first_, size_bytes);
}

Samples::Samples(const TokenFile& file, TokenColumn column, const TokenGiven& given)
    : file_(file),
      column_(std::move(column)),
      pieces_(file, implied() && !given.every_header ? kEndsWindowBytes : kWindowBytes) {
  if (column_.dtype) check_given_dtype(given, *column_.dtype, file.path);
  if (column_.dtype || column_.encoding != Encoding::plain) return;
  if (!given.dtype) {
    throw FormatError(
        file.path + ": column " + excerpt(column_.name) +
        " has the encoding 'bytes', which does not record the type of the tokens; give "
        "the dtype (llm-foundry wrote int64)");
  }
  column_.dtype = given.dtype;
}

Samples::Tokens Samples::find(std::uint64_t sample, std::uint64_t begin, std::uint64_t end,
                              bool read_header) {
  sample_ = sample;
  begin_ = begin;
  const Payload payload = find_payload(begin, end, read_header);
  if (column_.encoding == Encoding::plain) return whole(payload, 0);
  return read_header ? read_array(payload) : implied_array(payload);
}

std::string Samples::where() const {
  return file_.path + ": sample " + std::to_string(sample_) + " (at byte " +
         std::to_string(begin_) + ")";
}

void Samples::fail(const std::string& expected, const std::string& found) const {
  throw FormatError(where() + ": expected " + expected + ", found " + found);
}

Samples::Payload Samples::find_payload(std::uint64_t begin, std::uint64_t end, bool read_sizes) {
  const std::uint64_t head_bytes = kSizeBytes * column_.size_words();
  const std::uint64_t least_bytes = head_bytes + column_.fixed_bytes_before +
                                    column_.fixed_bytes_after + column_.size_bytes.value_or(0);
  const std::uint64_t size_bytes = end - begin;
  if (size_bytes < least_bytes || (head_bytes == 0 && size_bytes > least_bytes)) {
    fail((head_bytes == 0 ? "" : "at least ") + std::to_string(least_bytes) +
             " bytes for its columns",
         std::to_string(size_bytes));
  }
  const std::uint64_t variable_bytes = size_bytes - least_bytes;
  Payload payload{.offset_bytes = begin + head_bytes + column_.fixed_bytes_before,
                  .size_bytes = column_.size_bytes.value_or(variable_bytes)};
  if (read_sizes && head_bytes > 0) this->read_sizes(begin, variable_bytes, &payload);
  return payload;
}

void Samples::read_sizes(std::uint64_t begin, std::uint64_t variable_bytes, Payload* payload) {
  const std::uint64_t count = column_.size_words();
  const std::span<const std::byte> words = pieces_.at(begin, count * kSizeBytes);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = load_little<std::uint32_t>(&words[i * kSizeBytes]);
    if (i < column_.sizes_before) payload->offset_bytes += size;
    if (i == column_.sizes_before && !column_.size_bytes) payload->size_bytes = size;
    sum += size;
  }
  if (sum == variable_bytes) return;
  fail(std::to_string(variable_bytes) + " bytes as the sum of its size words", std::to_string(sum));
}

Samples::Tokens Samples::whole(const Payload& payload, std::uint64_t header_bytes) const {
  const std::uint64_t item_bytes = column_.dtype->itemsize_bytes;
  const std::uint64_t values_bytes = payload.size_bytes - header_bytes;
  if (values_bytes % item_bytes != 0) {
    fail("a multiple of " + std::to_string(item_bytes) + " bytes of tokens",
         std::to_string(values_bytes));
  }
  return {payload.offset_bytes + header_bytes, values_bytes / item_bytes};
}

// More tokens take more bytes, so the bytes say how many tokens there are.
Samples::Tokens Samples::implied_array(const Payload& payload) const {
  const std::uint64_t item_bytes = column_.dtype->itemsize_bytes;
  for (const SizeWidth& width : kWidths) {
    if (payload.size_bytes < 1 + width.bytes) break;
    const std::uint64_t values_bytes = payload.size_bytes - 1 - width.bytes;
    const std::uint64_t values = values_bytes / item_bytes;
    if (values_bytes % item_bytes != 0 || values < width.from || values > width.to) continue;
    return {payload.offset_bytes + 1 + width.bytes, values};
  }
  fail("the bytes of an ndarray with one axis and tokens of " + std::to_string(item_bytes) +
           " bytes",
       std::to_string(payload.size_bytes));
}

Samples::Tokens Samples::read_array(const Payload& payload) {
  const std::span<const std::byte> header =
      pieces_.at(payload.offset_bytes, std::min(payload.size_bytes, kMostArrayHeader));
  std::uint64_t at = 0;
  const auto need = [&](std::uint64_t bytes) {
    if (at + bytes <= header.size()) return;
    fail("the header of an ndarray", "only " + std::to_string(payload.size_bytes) + " bytes");
  };
  if (column_.encoding == Encoding::typed) {
    need(1);
    check_type(type_of_code(std::to_integer<std::uint8_t>(header[at++]), where()));
  }
  need(1);
  const auto axes = std::to_integer<std::uint8_t>(header[at++]);
  if (axes >> 2 != 1) fail("an ndarray with one axis", std::to_string(axes >> 2) + " axes");
  const std::uint64_t width = std::uint64_t{1} << (axes & 3);
  need(width);
  std::uint64_t values = 0;
  for (std::uint64_t i = width; i-- > 0;) {
    values = values << 8 | std::to_integer<std::uint64_t>(header[at + i]);
  }
  const Tokens tokens = whole(payload, at + width);
  if (tokens.count == values) return tokens;
  fail(std::to_string(values) + " tokens, as its shape says", std::to_string(tokens.count));
}

void Samples::check_type(const DType& found) {
  if (!column_.dtype) column_.dtype = found;
  if (found == *column_.dtype) return;
  fail("tokens of dtype " + column_.dtype->descr() + ", as in the samples before", found.descr());
}

}  // namespace lowtide::mds
