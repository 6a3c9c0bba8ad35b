#include "lowtide/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "core/quote.h"
#include "core/token_type.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr char kNativeOrder = std::endian::native == std::endian::little ? '<' : '>';
constexpr std::uint64_t kMaxItemBytes = 0x7fffffff;  // NumPy's own limit: a C int
constexpr std::uint64_t kTextBytes = 4;              // one character of kind U

struct Name {
  std::string_view name;
  char kind;
  std::uint64_t itemsize_bytes;
};

// Without the integers of token_type.h. NumPy's C names follow the platform's C types, so the
// compiler supplies their sizes.
constexpr std::array kNames = {
    Name{"bool", 'b', 1},
    Name{"bool_", 'b', 1},
    Name{"float16", 'f', 2},
    Name{"float32", 'f', 4},
    Name{"float64", 'f', 8},
    Name{"float128", 'f', 16},
    Name{"complex64", 'c', 8},
    Name{"complex128", 'c', 16},
    Name{"complex256", 'c', 32},
    Name{"byte", 'i', 1},
    Name{"ubyte", 'u', 1},
    Name{"short", 'i', sizeof(short)},
    Name{"ushort", 'u', sizeof(short)},
    Name{"intc", 'i', sizeof(int)},
    Name{"uintc", 'u', sizeof(int)},
    Name{"long", 'i', sizeof(long)},
    Name{"ulong", 'u', sizeof(long)},
    Name{"longlong", 'i', sizeof(long long)},
    Name{"ulonglong", 'u', sizeof(long long)},
    Name{"int", 'i', sizeof(void*)},
    Name{"int_", 'i', sizeof(void*)},
    Name{"uint", 'u', sizeof(void*)},
    Name{"intp", 'i', sizeof(void*)},
    Name{"uintp", 'u', sizeof(void*)},
    Name{"half", 'f', 2},
    Name{"single", 'f', 4},
    Name{"double", 'f', 8},
    Name{"float", 'f', 8},
    Name{"longdouble", 'f', 16},
    Name{"csingle", 'c', 8},
    Name{"cdouble", 'c', 16},
    Name{"complex", 'c', 16},
    Name{"clongdouble", 'c', 32},
    Name{"str", 'U', 0},
    Name{"str_", 'U', 0},
    Name{"bytes", 'S', 0},
    Name{"bytes_", 'S', 0},
    Name{"void", 'V', 0},
};

// One-letter codes; unlike names they take a byte order.
constexpr std::array kCodes = {
    Name{"?", 'b', 1},
    Name{"b", 'i', 1},
    Name{"B", 'u', 1},
    Name{"h", 'i', sizeof(short)},
    Name{"H", 'u', sizeof(short)},
    Name{"i", 'i', sizeof(int)},
    Name{"I", 'u', sizeof(int)},
    Name{"l", 'i', sizeof(long)},
    Name{"L", 'u', sizeof(long)},
    Name{"q", 'i', sizeof(long long)},
    Name{"Q", 'u', sizeof(long long)},
    Name{"n", 'i', sizeof(void*)},
    Name{"N", 'u', sizeof(void*)},
    Name{"p", 'i', sizeof(void*)},
    Name{"P", 'u', sizeof(void*)},
    Name{"e", 'f', 2},
    Name{"f", 'f', 4},
    Name{"d", 'f', 8},
    Name{"g", 'f', 16},
    Name{"F", 'c', 8},
    Name{"D", 'c', 16},
    Name{"G", 'c', 32},
    Name{"S", 'S', 0},
    Name{"U", 'U', 0},
    Name{"V", 'V', 0},
    Name{"c", 'S', 1},
    Name{"m", 'm', 8},
    Name{"M", 'M', 8},
};

constexpr std::array<std::string_view, 13> kTimeUnits = {"Y",  "M",  "W",  "D",  "h",  "m", "s",
                                                         "ms", "us", "ns", "ps", "fs", "as"};

template <std::size_t N>
const Name* find(const std::array<Name, N>& table, std::string_view name) {
  const auto at = std::ranges::find(table, name, &Name::name);
  return at == table.end() ? nullptr : &*at;
}

bool is_object(std::string_view code) {
  return code == "object" || code == "object_" ||
         (code.starts_with('O') &&
          code.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

// Removes the digits at the front of `text` and returns their value; nullopt without a digit or for
// a value that exceeds a C int.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (err != std::errc{} || number > kMaxItemBytes) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool has_size(char kind, std::uint64_t itemsize_bytes) {
  switch (kind) {
    case 'b':
      return itemsize_bytes == 1;
    case 'i':
    case 'u':
      return itemsize_bytes <= 8 && std::has_single_bit(itemsize_bytes);
    case 'f':
      return itemsize_bytes >= 2 && itemsize_bytes <= 16 && std::has_single_bit(itemsize_bytes);
    case 'c':
      return itemsize_bytes >= 8 && itemsize_bytes <= 32 && std::has_single_bit(itemsize_bytes);
    case 'm':
    case 'M':
      return itemsize_bytes == 8;
    case 'S':
    case 'U':
    case 'V':
      return itemsize_bytes <= kMaxItemBytes;
    default:
      return false;
  }
}

DType plain(char kind, std::uint64_t itemsize_bytes, char byte_order) {
  const bool has_order = kind == 'U' || (kind != 'S' && kind != 'V' && itemsize_bytes > 1);
  if (byte_order != '<' && byte_order != '>') byte_order = kNativeOrder;
  DType type;
  type.kind = kind;
  type.byte_order = has_order ? byte_order : '|';
  type.itemsize_bytes = itemsize_bytes;
  return type;
}

// "[ns]", "[25s]" -> the spelling that NumPy writes: without a multiple of one, and empty for the
// generic unit.
std::optional<std::string> canonical_unit(std::string_view text) {
  if (text.empty() || text == "[generic]") return "";
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string multiple;
  if (text.front() >= '0' && text.front() <= '9') {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    if (*number != 1) multiple = std::to_string(*number);
  }
  if (std::ranges::find(kTimeUnits, text) == kTimeUnits.end()) return std::nullopt;
  return "[" + multiple + std::string(text) + "]";
}

// Parses the text after the byte order: "f4", "U16", "M8[ns]", "datetime64[ns]", "?".
std::optional<DType> parse_code(std::string_view code, char byte_order) {
  if (const Name* known = find(kCodes, code)) {
    return plain(known->kind, known->itemsize_bytes, byte_order);
  }
  if (code.empty()) return std::nullopt;
  char kind = code.front();
  std::uint64_t itemsize_bytes = 8;
  if (code.starts_with("datetime64") || code.starts_with("timedelta64")) {
    kind = kind == 'd' ? 'M' : 'm';
    code.remove_prefix(code.find("64") + 2);
  } else {
    code.remove_prefix(1);
    const auto number = take_number(code);
    if (!number) return std::nullopt;
    itemsize_bytes = kind == 'U' ? *number * kTextBytes : *number;
  }
  if (kind == 'a') kind = 'S';
  if (!has_size(kind, itemsize_bytes)) return std::nullopt;
  DType type = plain(kind, itemsize_bytes, byte_order);
  if (kind == 'm' || kind == 'M') {
    const auto unit = canonical_unit(code);
    if (!unit) return std::nullopt;
    type.unit = *unit;
  } else if (!code.empty()) {
    return std::nullopt;
  }
  return type;
}

std::string tuple_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "(";
  for (const std::uint64_t entry : shape) {
    if (out.size() > 1) out += ' ';
    out += std::to_string(entry) + ",";
  }
  if (shape.size() > 1) out.pop_back();
  return out + ")";
}

std::string field_text(const Field& field) {
  std::string name = python_repr(field.name);
  if (field.title) name = "(" + python_repr(*field.title) + ", " + name + ")";
  const DType& type = field.type;
  if (type.element.empty()) return "(" + name + ", " + type.descr() + ")";
  return "(" + name + ", " + type.element.front().descr() + ", " + tuple_text(type.subshape) + ")";
}

}  // namespace

DType DType::parse(std::string_view text) {
  if (const std::optional<TokenType> known = token_type_named(text)) {
    return plain(token_type_row(*known).kind, token_bytes(*known), kNativeOrder);
  }
  if (const Name* known = find(kNames, text)) {
    return plain(known->kind, known->itemsize_bytes, kNativeOrder);
  }
  std::string_view code = text;
  char byte_order = kNativeOrder;
  if (!code.empty() && std::string_view("<>=|").find(code.front()) != std::string_view::npos) {
    byte_order = code.front();
    code.remove_prefix(1);
  }
  if (is_object(code)) {
    throw FormatError("dtype " + excerpt(text) +
                      " holds Python objects, which are never unpickled; save the array with a "
                      "plain dtype");
  }
  if (auto type = parse_code(code, byte_order)) return *std::move(type);
  throw FormatError("expected a NumPy dtype such as '<f4', 'uint16' or 'datetime64[ns]', found " +
                    excerpt(text));
}

std::string DType::descr() const {
  if (!element.empty()) return "(" + element.front().descr() + ", " + tuple_text(subshape) + ")";
  if (!fields.empty()) {
    std::string out = "[";
    for (const Field& field : fields) {
      if (field.is_padding() && field.type.itemsize_bytes == 0) continue;  // stands for dtype([])
      if (out.size() > 1) out += ", ";
      out += field_text(field);
    }
    return out + "]";
  }
  const std::uint64_t size = kind == 'U' ? itemsize_bytes / kTextBytes : itemsize_bytes;
  return std::string("'") + byte_order + kind + std::to_string(size) + unit + "'";
}

bool Field::is_padding() const {
  return name.empty() && !title && type.kind == 'V' && type.fields.empty() && type.element.empty();
}

bool DType::operator==(const DType& other) const {
  return kind == other.kind && byte_order == other.byte_order &&
         itemsize_bytes == other.itemsize_bytes && unit == other.unit &&
         extension == other.extension && subshape == other.subshape && element == other.element &&
         fields == other.fields;
}

}  // namespace lowtide
