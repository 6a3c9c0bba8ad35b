// written_array.h - small arrays to write, and what a writer made, as the reader sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/layout.h"
#include "lowtide/array.h"
#include "lowtide/writer.h"

namespace lowtide {

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Rows of three bytes.
inline CreateOptions triples(std::optional<std::uint64_t> rows = std::nullopt,
                             bool append = false) {
  return {.dtype = "uint8",
          .rows = rows,
          .row_shape = std::vector<std::uint64_t>{3},
          .append = append,
          .memory_bytes = 1 << 20};
}

inline void append_text(ArrayWriter& writer, const std::string& text) {
  writer.append(text.size() / 3, bytes_of(text));
}

inline std::string zeros(std::size_t count) {
  return std::string(count, '\0');
}

// Shape and contents, such as "(2, 3) abcdef"; "(none)" if there is no file.
inline std::string written(const std::string& path) {
  if (!std::filesystem::exists(path)) return "(none)";
  const Array array = Array::open(path);
  std::string data(array.rows() * array.row_bytes(), '\0');
  array.read(0, array.rows(), std::as_writable_bytes(std::span(data)));
  return shape_text(array.shape()) + " " + data;
}

}  // namespace lowtide
