// sparse_header.h - folders of BioNeMo-SCDL: a sparse matrix in three raw files, and a header with
// their types and lengths. None of them records the number of columns. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lowtide::scdl {

inline constexpr std::string_view kFormat = "scdl";
inline constexpr std::string_view kHeaderFile = "header.sch";
inline constexpr std::uint64_t kMaxHeaderBytes = 1024 * 1024;

struct Part {
  std::string_view name;  // in the header
  std::string_view file;
  std::string dtype = {};  // "float32"
  std::uint64_t length = 0;
};
// The values, the column of each, and where each row starts, with the end of the last.
struct Header {
  Part data = {.name = "DATA", .file = "data.npy"};
  Part columns = {.name = "COLPTR", .file = "col_ptr.npy"};
  Part rows = {.name = "ROWPTR", .file = "row_ptr.npy"};

  [[nodiscard]] std::array<Part*, 3> parts() { return {&data, &columns, &rows}; }
};

// Whether a file begins like such a header.
[[nodiscard]] bool is_header(std::span<const std::byte> start);
// Throws FormatError, which names `path`.
[[nodiscard]] Header parse_header(std::span<const std::byte> text, const std::string& path);

}  // namespace lowtide::scdl
