// npy_file.h - small .npy files, written as NumPy writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/layout.h"
#include "os/temp_folder.h"

namespace lowtide {

inline std::string npy_text(const std::string& descr, const std::vector<std::uint64_t>& shape,
                            const std::string& data, bool fortran_order = false) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                       ", 'shape': " + shape_text(shape) + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 0xFF);
  text += static_cast<char>(header.size() >> 8);
  return text + header + data;
}

}  // namespace lowtide
