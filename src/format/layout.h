// layout.h - what a header promises: where the elements lie and of what type they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/dtype.h"

namespace lowtide {

struct Layout {
  std::string format;                // a format word: "npy", "raw"
  DType dtype;
  std::vector<std::uint64_t> shape;  // empty: one element (0-d)
  bool fortran_order = false;
  std::uint64_t data_offset_bytes = 0;
  std::uint64_t data_bytes = 0;      // product of shape times itemsize, checked
};

}  // namespace lowtide
