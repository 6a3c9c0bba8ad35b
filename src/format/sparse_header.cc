#include "format/sparse_header.h"

#include <algorithm>
#include <array>

#include "lowtide/error.h"

namespace lowtide::scdl {
namespace {

constexpr std::string_view kMagic = "SCDL";
constexpr std::size_t kVersionBytes = 3;
// Codes from 1.
constexpr std::array kTypes = {"uint8",   "uint16",  "uint32", "uint64",
                               "float16", "float32", "float64"};

// Numbers with the most significant byte first.
class Reader {
 public:
  Reader(std::span<const std::byte> text, const std::string& path) : text_(text), path_(path) {}

  [[nodiscard]] std::span<const std::byte> take(std::uint64_t size_bytes) {
    if (size_bytes > text_.size()) refuse("it ends early");
    const auto taken = text_.first(size_bytes);
    text_ = text_.subspan(size_bytes);
    return taken;
  }
  [[nodiscard]] std::uint64_t number(std::size_t size_bytes) {
    std::uint64_t value = 0;
    for (const std::byte byte : take(size_bytes))
      value = value << 8 | std::to_integer<unsigned>(byte);
    return value;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw FormatError(path_ + ": SCDL header: " + why);
  }

 private:
  std::span<const std::byte> text_;
  const std::string& path_;
};

void read_part(Reader* reader, Header* header) {
  const auto name = reader->take(reader->number(4));
  const std::uint64_t length = reader->number(8), code = reader->number(4);
  if (reader->number(1) != 0) (void)reader->take(4 * reader->number(4));  // its shape
  for (Part* const part : header->parts()) {
    if (!std::ranges::equal(name, std::as_bytes(std::span(part->name)))) continue;
    if (code == 0 || code > kTypes.size()) {
      reader->refuse(std::string(part->name) + " has the unknown type " + std::to_string(code));
    }
    part->dtype = kTypes[code - 1];
    part->length = length;
  }
}

}  // namespace

bool is_header(std::span<const std::byte> start) {
  return start.size() >= kMagic.size() &&
         std::ranges::equal(start.first(kMagic.size()), std::as_bytes(std::span(kMagic)));
}

Header parse_header(std::span<const std::byte> text, const std::string& path) {
  Reader reader(text, path);
  if (!is_header(reader.take(kMagic.size()))) reader.refuse("it does not begin with SCDL");
  (void)reader.take(kVersionBytes);
  const std::uint64_t byte_order = reader.number(1), backend = reader.number(4);
  if (byte_order != 1 || backend != 1) {
    reader.refuse("expected byte order 1 and backend 1, found byte order " +
                  std::to_string(byte_order) + " and backend " + std::to_string(backend));
  }
  Header header;
  for (std::uint64_t left = reader.number(4); left > 0; --left) read_part(&reader, &header);
  for (const Part* const part : header.parts()) {
    if (part->dtype.empty()) reader.refuse("it lacks " + std::string(part->name));
  }
  if (header.rows.length == 0) reader.refuse("its list of row ends is empty");
  return header;
}

}  // namespace lowtide::scdl
