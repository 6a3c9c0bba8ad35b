// array_header.h - the header of an array file that is being written, with room for more rows.
// Pure: it makes and parses bytes and opens nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/layout.h"
#include "format/registry.h"

namespace lowtide {

// A .npy header, byte for byte as np.save writes it. NumPy reserves space for the digits of the
// first axis, so that rows can be appended: the header of any number of rows has the same size.
// Immutable; any thread.
class ArrayHeader {
 public:
  // Of a new file. The shape has at least one axis; its first entry does not matter, except to the
  // check that the array has less than 2^63 bytes. Throws FormatError, which names `path`.
  ArrayHeader(const DType& dtype, std::vector<std::uint64_t> shape, bool fortran_order,
              const std::string& path);
  // Of an existing file, to which rows will be added. Throws FormatError if rows cannot be added:
  // it is in Fortran order, has no axis, contains more than one array, or is no .npy file.
  static ArrayHeader of_file(std::uint64_t file_bytes, const ReadStart& read,
                             const std::string& path);

  [[nodiscard]] const Layout& layout() const { return layout_; }
  // With the header itself this is where the data starts.
  [[nodiscard]] std::uint64_t size_bytes() const { return layout_.data_offset_bytes; }
  // The number of rows that the header has room for. Smaller than 2^63 only in old or foreign
  // files.
  [[nodiscard]] std::uint64_t most_rows() const { return most_rows_; }
  // Requires rows <= most_rows().
  [[nodiscard]] std::string text(std::uint64_t rows) const;

 private:
  ArrayHeader() = default;
  Layout layout_;
  unsigned major_ = 1;
  std::uint64_t most_rows_ = 0;
};

// The word of the format that has such a header, and how the names of its files end.
[[nodiscard]] std::string_view array_header_word();
[[nodiscard]] std::string_view array_suffix();
// Whether arrays can be written in this format, with or without a header.
[[nodiscard]] bool can_write_arrays(std::string_view format);
// Throws std::invalid_argument unless the name ends as that of a file with such a header.
void check_array_name(const std::string& path);

// The paths of the files in a folder that are named so; `names` are all names in it, in order.
// Throws FormatError if another tool wrote the folder.
[[nodiscard]] std::vector<std::string> array_files_in(const std::string& folder,
                                                      const std::vector<std::string>& names);

}  // namespace lowtide
