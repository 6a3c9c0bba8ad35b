// written_array.h - what a writer made, as the reader sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "format/layout.h"
#include "lowtide/array.h"

namespace lowtide {

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
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
