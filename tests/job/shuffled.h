// shuffled.h - the slow obvious twin of a shuffle, and what is found in files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lowtide/array.h"
#include "order/order.h"
#include "os/temp_folder.h"
#include "support/npy_file.h"
#include "writer/faulty_calls.h"

namespace lowtide {

inline std::vector<std::uint64_t> shuffled_units(std::uint64_t units, std::uint64_t seed) {
  std::vector<std::uint64_t> order(units);
  make_shuffle(units, seed)->fill(0, 0, order);
  return order;
}

// As little-endian bytes.
template <typename Integer>
std::string text_of(const std::vector<Integer>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Integer)};
}

// Rows of equal size.
inline std::string shuffled(const std::string& data, std::uint64_t row_bytes, std::uint64_t rows,
                            std::uint64_t seed) {
  std::string out;
  for (const std::uint64_t row : shuffled_units(rows, seed))
    out.append(data, row * row_bytes, row_bytes);
  return out;
}

// A file, or all files of a folder, sorted by name.
inline std::vector<std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const std::string& name : names_in(path)) files.push_back(path + "/" + name);
  return files;
}

// The data of one array, or of all parts in a folder.
inline std::string array_bytes(const std::string& path) {
  std::string data;
  for (const std::string& file : files_of(path)) {
    const Array array = Array::open(file);
    std::string rows(array.rows() * array.row_bytes(), '\0');
    array.read(0, array.rows(), std::as_writable_bytes(std::span(rows)));
    data += rows;
  }
  return data;
}

}  // namespace lowtide
