// dtype.h - the type of one array element, as NumPy names it.
//
// A DType is a value type, independent of Python. It is a plain kind, a tree of fields
// (structured), or one element type with a shape (sub-array). There are no object dtypes: every way
// to make a DType refuses them, so nothing is ever unpickled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

struct Field;

struct DType {
  // NumPy's letters: b bool, i signed, u unsigned, f float, c complex, m timedelta64, M datetime64,
  // S bytes, U text (UCS-4), V void. A structured type and a sub-array have kind V.
  char kind = 'V';
  char byte_order = '|';  // '<', '>', or '|' if order has no meaning; parse() resolves '='
  std::uint64_t itemsize_bytes = 0;  // of the whole, with fields and sub-array shape
  std::string unit;                  // "[ns]", "[25s]" for m and M; empty for the generic unit
  // Of plain void: the name of a type that NumPy lacks, as ml_dtypes and torch spell it
  // ("bfloat16"); otherwise empty. A descr does not contain it.
  std::string extension;

  std::vector<Field> fields;            // structured: in file order, padding as unnamed V
  std::vector<std::uint64_t> subshape;  // sub-array: its shape; then `element` holds one DType
  std::vector<DType> element;           // empty, or the one element type of the sub-array

  // Parses a type string ("<f4", "|b1", ">M8[ns]", "<U16", "|V8") or a NumPy name ("float32",
  // "uint16", "bool", "datetime64[ns]"). Throws FormatError, which quotes the text; object ("|O")
  // has a message of its own. Structured types are parsed where an option takes a descr.
  [[nodiscard]] static DType parse(std::string_view text);

  // The Python literal that numpy.lib.format writes for this type: "'<f4'",
  // "[('x', '<f4'), ('y', '<i8', (2,))]". numpy.lib.format.descr_to_dtype reads it back.
  [[nodiscard]] std::string descr() const;

  [[nodiscard]] bool operator==(const DType& other) const;
};

// One field of a structured type.
struct Field {
  std::string name;                  // UTF-8; NumPy allows an empty one
  std::optional<std::string> title;  // UTF-8
  DType type;
  std::uint64_t offset_bytes = 0;  // from the start of the element

  // Whether this is padding between fields or after the last one: plain void without a name or a
  // title, as NumPy writes it. An unnamed field of any other type is a field.
  [[nodiscard]] bool is_padding() const;
  [[nodiscard]] bool operator==(const Field& other) const = default;
};

}  // namespace lowtide
