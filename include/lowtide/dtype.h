// dtype.h - the type of one array element, as NumPy names it.
//
// A DType is a value: a plain kind, or a tree of fields (structured) or of one element type and a
// shape (sub-array). It never refers to Python. Object dtypes do not exist here: every way to make
// a DType refuses them, so nothing is ever unpickled.
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
  // S bytes, U text (UCS-4), V void. A structured type and a sub-array are kind V.
  char kind = 'V';
  char byte_order = '|';  // '<', '>' or '|' where order has no meaning; '=' is resolved when parsed
  std::uint64_t itemsize_bytes = 0;  // of the whole: fields and sub-array shape included
  std::string unit;                  // "[ns]", "[25s]" of m and M; empty for the generic unit

  std::vector<Field> fields;            // structured: in file order, padding included as unnamed V
  std::vector<std::uint64_t> subshape;  // sub-array: its shape; then `element` holds one DType
  std::vector<DType> element;           // empty, or exactly the element of the sub-array

  // Reads a type string ("<f4", "|b1", ">M8[ns]", "<U16", "|V8") or a NumPy name ("float32",
  // "uint16", "bool", "datetime64[ns]"). Throws FormatError that names the text; object ("|O") is
  // refused with its own message. Structured types come through format/descr.h.
  [[nodiscard]] static DType parse(std::string_view text);

  // The Python literal that numpy.lib.format writes for this type: "'<f4'",
  // "[('x', '<f4'), ('y', '<i8', (2,))]". numpy.lib.format.descr_to_dtype reads it back.
  [[nodiscard]] std::string descr() const;

  [[nodiscard]] bool operator==(const DType& other) const;
};

struct Field {
  std::string name;                  // UTF-8; NumPy allows an empty one
  std::optional<std::string> title;  // UTF-8
  DType type;
  std::uint64_t offset_bytes = 0;

  // Bytes between fields, or behind the last: plain void without a name and a title, as NumPy
  // writes them. A field without a name that is anything else is a field.
  [[nodiscard]] bool is_padding() const;
  [[nodiscard]] bool operator==(const Field& other) const = default;
};

}  // namespace lowtide
