#include "format/descr.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/checked.h"
#include "core/quote.h"
#include "format/layout.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

using Kind = Literal::Kind;

constexpr std::uint64_t kMaxItemBytes = 0x7fffffff;  // NumPy's own limit: a C int

[[noreturn]] void fail(const std::string& expected, const Literal& found) {
  throw FormatError("expected " + expected + ", found " + excerpt(found.source));
}

std::uint64_t axis_length(const Literal& length) {
  if (length.kind != Kind::integer || !length.integer || *length.integer < 0) {
    fail("shape entries that are integers from 0 to 2^63 - 1", length);
  }
  return static_cast<std::uint64_t>(*length.integer);
}

bool is_plain(const DType& type) {
  return type.fields.empty() && type.element.empty();
}

// NumPy takes ('S', 3) for 'S3'.
DType sized(const DType& type, const Literal& size) {
  const std::string code{type.byte_order, type.kind};
  return DType::parse(code + std::to_string(axis_length(size)));
}

std::vector<std::uint64_t> axes_from_literal(const Literal& shape) {
  std::vector<std::uint64_t> axes;
  axes.reserve(shape.items.size());
  for (const Literal& length : shape.items) axes.push_back(axis_length(length));
  return axes;
}

// `shape` is a tuple or a list, or one integer for one axis.
DType subarray(DType element, const Literal& shape) {
  const bool sizeless = element.itemsize_bytes == 0 && is_plain(element);
  if (shape.kind == Kind::integer && sizeless) return sized(element, shape);
  std::vector<std::uint64_t> axes = shape.kind == Kind::integer
                                        ? std::vector<std::uint64_t>{axis_length(shape)}
                                    : shape.kind == Kind::list ? axes_from_literal(shape)
                                                               : shape_from_literal(shape);
  if (axes.empty()) return element;
  if (sizeless || (element.itemsize_bytes == 0 && !element.element.empty())) {
    fail("an element type with a size before a sub-array shape", shape);
  }
  if (axes.size() > kMaxAxes) fail("a sub-array of at most 64 axes", shape);
  DType type;
  type.itemsize_bytes = element.itemsize_bytes;
  for (const std::uint64_t length : axes) {
    if (length > kMaxItemBytes || !checked_mul(type.itemsize_bytes, length, &type.itemsize_bytes) ||
        type.itemsize_bytes > kMaxItemBytes) {
      fail("a sub-array of less than 2^31 bytes", shape);
    }
  }
  type.subshape = std::move(axes);
  type.element.push_back(std::move(element));
  return type;
}

DType padding(std::uint64_t size_bytes) {
  DType type;
  type.itemsize_bytes = size_bytes;
  return type;
}

// (name, descr) or (name, descr, shape), where name may be (title, name).
Field field_from_literal(const Literal& literal) {
  const bool sequence = literal.kind == Kind::tuple || literal.kind == Kind::list;
  if (!sequence || literal.items.size() < 2 || literal.items.size() > 3) {
    fail("a field such as ('x', '<f4') or ('x', '<f4', (2,))", literal);
  }
  Field field;
  const Literal& name = literal.items[0];
  if (name.kind == Kind::string) {
    field.name = name.string;
  } else if (name.kind == Kind::tuple && name.items.size() == 2 &&
             name.items[0].kind == Kind::string && name.items[1].kind == Kind::string) {
    field.title = name.items[0].string;
    field.name = name.items[1].string;
  } else {
    fail("a field name such as 'x' or ('title', 'x')", name);
  }
  field.type = dtype_from_descr(literal.items[1]);
  if (literal.items.size() == 3) field.type = subarray(std::move(field.type), literal.items[2]);
  // As in NumPy, an unnamed sub-array is padding too.
  const bool padded = name.kind == Kind::string && field.name.empty();
  if (padded && !field.type.element.empty()) field.type = padding(field.type.itemsize_bytes);
  return field;
}

DType structured(const Literal& list) {
  DType type;
  std::unordered_set<std::string> taken;
  for (const Literal& item : list.items) {
    Field field = field_from_literal(item);
    if (field.is_padding() && field.type.itemsize_bytes == 0) continue;
    const bool fresh = field.is_padding() || (taken.insert(field.name).second &&
                                              (!field.title || taken.insert(*field.title).second));
    if (!fresh) fail("each field name and title only once", item);
    field.offset_bytes = type.itemsize_bytes;
    type.itemsize_bytes += field.type.itemsize_bytes;  // both below 2^31
    if (type.itemsize_bytes > kMaxItemBytes) fail("a dtype of less than 2^31 bytes", item);
    type.fields.push_back(std::move(field));
  }
  // NumPy's dtype([]) has no fields; padding of 0 bytes distinguishes it from '|V0'.
  if (type.fields.empty()) type.fields.push_back({"", std::nullopt, padding(0), 0});
  return type;
}

}  // namespace

std::vector<std::uint64_t> shape_from_literal(const Literal& shape) {
  if (shape.kind != Kind::tuple) fail("a shape that is a tuple of integers", shape);
  return axes_from_literal(shape);
}

DType dtype_from_descr(const Literal& descr) {
  switch (descr.kind) {
    case Kind::string:
      return DType::parse(descr.string);
    case Kind::list:
      return structured(descr);
    case Kind::tuple:
      if (descr.items.size() == 2)
        return subarray(dtype_from_descr(descr.items[0]), descr.items[1]);
      break;
    default:
      break;
  }
  fail("a descr such as '<f4', [('x', '<f4')] or ('<f4', (3,))", descr);
}

DType parse_descr(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool literal =
      start != std::string_view::npos && std::string_view("'\"[({").find(text[start]) < 5;
  if (!literal) return DType::parse(text);
  return dtype_from_descr(parse_literal(text, Dialect::python3));
}

}  // namespace lowtide
