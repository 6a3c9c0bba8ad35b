// The fill value of zarr arrays: JSON -> the bytes of one element.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "chunk_format/zarr.h"
#include "chunk_format/zarr_json.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "lowtide/error.h"

namespace lowtide::zarr {
namespace {

using Bytes = std::vector<std::byte>;

[[noreturn]] void fail_fill(std::string_view json, const DType& dtype) {
  throw FormatError("expected a fill value of dtype " + dtype.descr() + ", found " + excerpt(json));
}

// The low `size` bytes of an integer, little-endian.
Bytes bytes_of(std::uint64_t bits, std::uint64_t size) {
  Bytes bytes(size);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(size, 8); ++i) {
    bytes[i] = static_cast<std::byte>(bits >> (8 * i));
  }
  return bytes;
}

// Round to nearest, ties to even, as NumPy does.
std::uint32_t half_of(double value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size >= 65520.0) return sign | 0x7c00;
  if (size < 0x1p-14) return sign | static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24));
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // 0.5 <= fraction < 1
  const auto digits = static_cast<std::uint32_t>(std::nearbyint(fraction * 2048));
  return sign | ((static_cast<std::uint32_t>(exponent + 13) << 10) + digits);
}

Bytes bytes_of_float(double value, std::uint64_t size) {
  if (size == 2) return bytes_of(half_of(value), 2);
  if (size == 4) return bytes_of(std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  return bytes_of(std::bit_cast<std::uint64_t>(value), 8);
}

template <typename Number>
std::optional<Number> parsed(std::string_view text, int base = 10) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<Number>) {
    result = std::from_chars(text.data(), end, value);
  } else {
    result = std::from_chars(text.data(), end, value, base);
  }
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

Bytes float_fill(std::string_view json, std::uint64_t size, const DType& dtype) {
  if (size != 2 && size != 4 && size != 8) fail_fill(json, dtype);
  if (!json.starts_with('"')) {
    const auto value = parsed<double>(json);
    if (!value) fail_fill(json, dtype);
    return bytes_of_float(*value, size);
  }
  const std::string word = string_of(json);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "NaN") return bytes_of_float(std::numeric_limits<double>::quiet_NaN(), size);
  if (word == "Infinity") return bytes_of_float(kInfinity, size);
  if (word == "-Infinity") return bytes_of_float(-kInfinity, size);
  if (word.starts_with("0x") && word.size() == 2 + 2 * size) {  // its bits
    if (const auto bits = parsed<std::uint64_t>(std::string_view(word).substr(2), 16))
      return bytes_of(*bits, size);
  }
  fail_fill(json, dtype);
}

Bytes integer_fill(std::string_view json, const DType& dtype) {
  const std::uint64_t size = dtype.itemsize_bytes;
  const unsigned bits = static_cast<unsigned>(size * 8);
  std::uint64_t value = 0;
  if (json.starts_with('-')) {
    const auto number = parsed<std::int64_t>(json);
    const std::int64_t least = size >= 8 ? INT64_MIN : -(std::int64_t{1} << (bits - 1));
    if (!number || *number < least || dtype.kind == 'u') fail_fill(json, dtype);
    value = static_cast<std::uint64_t>(*number);
  } else {
    const auto number = parsed<std::uint64_t>(json);
    const unsigned digits = dtype.kind == 'u' ? bits : bits - 1;
    if (!number || (digits < 64 && *number >> digits != 0)) fail_fill(json, dtype);
    value = *number;
  }
  return bytes_of(value, size);
}

// Standard base64, with padding.
std::optional<Bytes> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=') && text.size() % 4 != 1) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  Bytes bytes;
  std::uint32_t word = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    word = (word << 6 | static_cast<std::uint32_t>(digit)) & 0xffffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(word >> bits));
  }
  return bytes;
}

// Bytes and structured types as base64, raw ones also as a list of bytes.
Bytes bytes_fill(std::string_view json, const DType& dtype) {
  Bytes bytes;
  if (json.starts_with('[')) {
    for (const std::uint64_t byte : numbers_of(json)) {
      if (byte > 255) fail_fill(json, dtype);
      bytes.push_back(static_cast<std::byte>(byte));
    }
  } else if (json.starts_with('"')) {
    auto found = from_base64(string_of(json));
    if (!found) fail_fill(json, dtype);
    bytes = *std::move(found);
  } else if (json != "0") {
    fail_fill(json, dtype);
  }
  const bool pads = dtype.kind == 'S' || json == "0";
  if (bytes.size() > dtype.itemsize_bytes || (!pads && bytes.size() < dtype.itemsize_bytes))
    fail_fill(json, dtype);
  bytes.resize(dtype.itemsize_bytes);
  return bytes;
}

// Text as UTF-32.
Bytes text_fill(std::string_view json, const DType& dtype) {
  const std::string text = string_of(json);
  Bytes bytes;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t size = utf8_size(left);  // not 0: the JSON was UTF-8
    constexpr std::uint32_t kFirst[] = {0x7f, 0x1f, 0x0f, 0x07};
    std::uint32_t code = static_cast<unsigned char>(left[0]) & kFirst[size - 1];
    for (std::size_t i = 1; i < size; ++i) {
      code = code << 6 | (static_cast<unsigned char>(left[i]) & 0x3f);
    }
    const Bytes one = bytes_of(code, 4);
    bytes.insert(bytes.end(), one.begin(), one.end());
    left.remove_prefix(size);
  }
  if (bytes.size() > dtype.itemsize_bytes) fail_fill(json, dtype);
  bytes.resize(dtype.itemsize_bytes);
  return bytes;
}

// Of each word of `size` bytes.
void swap_bytes(Bytes* bytes, std::uint64_t size) {
  for (std::size_t at = 0; at + size <= bytes->size(); at += size) {
    std::reverse(bytes->begin() + static_cast<std::ptrdiff_t>(at),
                 bytes->begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

}  // namespace

std::vector<std::byte> parse_fill(std::string_view json, const DType& dtype) {
  if (json == "null" || dtype.itemsize_bytes == 0) return {};
  Bytes bytes;
  std::uint64_t word_bytes = dtype.itemsize_bytes;
  switch (dtype.kind) {
    case 'b':
      if (json != "true" && json != "false" && json != "0" && json != "1") fail_fill(json, dtype);
      bytes = bytes_of(json == "true" || json == "1" ? 1 : 0, 1);
      break;
    case 'i':
    case 'u':
    case 'm':
    case 'M':
      if (json == "\"NaT\"" && dtype.kind != 'i' && dtype.kind != 'u') {
        bytes = bytes_of(std::uint64_t{1} << 63, dtype.itemsize_bytes);
      } else {
        bytes = integer_fill(json, dtype);
      }
      break;
    case 'f':
      bytes = float_fill(json, dtype.itemsize_bytes, dtype);
      break;
    case 'c': {
      word_bytes /= 2;
      const auto parts = list_of(json);
      if (parts.size() != 2) fail_fill(json, dtype);
      for (const std::string_view part : parts) {
        const Bytes one = float_fill(part, word_bytes, dtype);
        bytes.insert(bytes.end(), one.begin(), one.end());
      }
      break;
    }
    case 'U':
      bytes = json == "0" ? Bytes(dtype.itemsize_bytes) : text_fill(json, dtype);
      word_bytes = 4;
      break;
    default:  // as stored, whatever its byte order
      return bytes_fill(json, dtype);
  }
  if (dtype.byte_order == '>') swap_bytes(&bytes, word_bytes);
  return bytes;
}

}  // namespace lowtide::zarr
