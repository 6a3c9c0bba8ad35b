#include "format/npy.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/quote.h"
#include "format/array_format.h"
#include "format/descr.h"
#include "format/python_literal.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"

namespace lowtide::npy {
namespace {

using Kind = Literal::Kind;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionAt = 6;  // one byte major, one byte minor
constexpr std::size_t kLengthAt = 8;   // little-endian: two bytes in version 1.0, then four

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

std::size_t major_version(std::span<const std::byte> start) {
  return std::to_integer<std::size_t>(start[kVersionAt]);
}

std::size_t preamble_bytes(std::span<const std::byte> start) {
  return kLengthAt + (major_version(start) == 1 ? 2 : 4);
}

void check_version(std::span<const std::byte> start, const std::string& path) {
  const std::size_t major = major_version(start);
  const auto minor = std::to_integer<std::size_t>(start[kVersionAt + 1]);
  if (major >= 1 && major <= 3 && minor == 0) return;
  throw FormatError(path + ": expected .npy version 1.0, 2.0 or 3.0, found " +
                    std::to_string(major) + "." + std::to_string(minor));
}

[[noreturn]] void fail_truncated(const std::string& path, std::uint64_t expected,
                                 std::size_t found) {
  throw FormatError(path + ": expected a .npy header up to byte " + std::to_string(expected) +
                    ", found the end at byte " + std::to_string(found));
}

// A header has exactly these three keys, each once, in any order.
struct Header {
  const Literal* descr = nullptr;
  const Literal* fortran_order = nullptr;
  const Literal* shape = nullptr;
};

Header header_of(const Literal& dict) {
  constexpr std::string_view kExpected =
      "a dict with the keys 'descr', 'fortran_order' and 'shape'";
  if (dict.kind != Kind::dict) {
    throw FormatError("expected " + std::string(kExpected) + ", found " + excerpt(dict.source));
  }
  Header header;
  for (std::size_t i = 0; i < dict.items.size(); i += 2) {
    const Literal& key = dict.items[i];
    const std::string_view word = key.kind == Kind::string ? key.string : std::string_view();
    const Literal** slot = word == "descr"           ? &header.descr
                           : word == "fortran_order" ? &header.fortran_order
                           : word == "shape"         ? &header.shape
                                                     : nullptr;
    if (slot == nullptr || *slot != nullptr) {
      throw FormatError("expected " + std::string(kExpected) + ", found " +
                        (slot == nullptr ? "the unknown key " : "a second key ") +
                        excerpt(key.source));
    }
    *slot = &dict.items[i + 1];
  }
  const std::string_view missing = header.descr == nullptr           ? "descr"
                                   : header.fortran_order == nullptr ? "fortran_order"
                                   : header.shape == nullptr         ? "shape"
                                                                     : "";
  if (!missing.empty()) {
    throw FormatError("expected " + std::string(kExpected) + ", found no key " + excerpt(missing));
  }
  return header;
}

Layout layout_of(std::string_view text, Dialect dialect) {
  const Literal dict = parse_literal(text, dialect);
  const Header header = header_of(dict);
  if (header.fortran_order->kind != Kind::boolean) {
    throw FormatError("expected fortran_order True or False, found " +
                      excerpt(header.fortran_order->source));
  }
  Layout layout;
  layout.format = kWord;
  layout.dtype = dtype_from_descr(*header.descr);
  layout.shape = shape_from_literal(*header.shape);
  layout.fortran_order = header.fortran_order->truth;
  return layout;
}

bool matches(const ArrayFormat&, const ArraySource& source) {
  return has_magic(source.start);
}

Layout open(const ArrayFormat&, const ArraySource& source) {
  // A truncated file is read as far as it goes: parse() then names the byte where it ends.
  std::vector<std::byte> header(
      std::min(header_bytes(source.start, source.path), source.file_bytes));
  source.read(0, header);
  return parse(header, source.file_bytes, source.path);
}

constexpr ArrayFormat kEntries[] = {
    {.word = kWord, .binding = true, .matches = matches, .open = open}};

}  // namespace

extern const std::span<const ArrayFormat> kFormats;  // for the list of registry.cc
constinit const std::span<const ArrayFormat> kFormats = kEntries;

bool has_magic(std::span<const std::byte> start) {
  return as_text(start).starts_with(kMagic);
}

std::uint64_t header_bytes(std::span<const std::byte> start, const std::string& path) {
  if (!has_magic(start)) {
    throw FormatError(path + ": expected the .npy magic " + excerpt(kMagic) + ", found " +
                      excerpt(as_text(start).substr(0, kMagic.size())));
  }
  if (start.size() < kLengthAt) fail_truncated(path, kPreambleBytes, start.size());
  check_version(start, path);
  const std::size_t preamble = preamble_bytes(start);
  if (start.size() < preamble) fail_truncated(path, preamble, start.size());
  const std::uint64_t length = little_endian(start.subspan(kLengthAt, preamble - kLengthAt));
  if (length > kMaxHeaderBytes) {
    throw FormatError(path + ": expected a header of at most " + format_bytes(kMaxHeaderBytes) +
                      ", found one of " + std::to_string(length) + " bytes");
  }
  return preamble + length;
}

Layout parse(std::span<const std::byte> start, std::optional<std::uint64_t> file_bytes,
             const std::string& path) {
  const std::uint64_t end = header_bytes(start, path);
  if (start.size() < end) fail_truncated(path, end, start.size());
  const std::size_t preamble = preamble_bytes(start);
  const std::string_view text = as_text(start.subspan(preamble, end - preamble));
  const Dialect dialect = major_version(start) < 3 ? Dialect::python2 : Dialect::python3;
  Layout layout;
  try {
    layout = layout_of(text, dialect);
  } catch (const FormatError& error) {
    throw FormatError(path + ": .npy header: " + error.what());
  }
  layout.data_offset_bytes = end;
  layout = make_layout(std::move(layout), path);
  if (file_bytes) check_fits(layout, *file_bytes, path);
  return layout;
}

}  // namespace lowtide::npy
