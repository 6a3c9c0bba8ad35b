#include "format/raw.h"

#include <utility>

#include "lowtide/error.h"

namespace lowtide::raw {
namespace {

// Counts all elements from the offset to the end.
std::uint64_t count_elements(std::uint64_t itemsize_bytes, std::uint64_t offset_bytes,
                             std::uint64_t file_bytes, const std::string& path) {
  if (offset_bytes >= file_bytes) {
    throw FormatError(path + ": expected data at byte " + std::to_string(offset_bytes) +
                      ", found the end at byte " + std::to_string(file_bytes));
  }
  if (itemsize_bytes == 0) {
    throw FormatError(path + ": expected a shape for a dtype of 0 bytes, found none; give one");
  }
  const std::uint64_t data_bytes = file_bytes - offset_bytes;
  if (data_bytes % itemsize_bytes != 0) {
    throw FormatError(path + ": expected a multiple of the item size " +
                      std::to_string(itemsize_bytes) + " after byte " +
                      std::to_string(offset_bytes) + ", found " + std::to_string(data_bytes) +
                      " bytes (" + std::to_string(data_bytes % itemsize_bytes) +
                      " too many); give its shape or another dtype");
  }
  return data_bytes / itemsize_bytes;
}

}  // namespace

Layout describe(const Description& description, std::uint64_t file_bytes, const std::string& path) {
  if (file_bytes == 0) throw FormatError(path + ": expected data, found an empty file");
  if (!description.dtype) {
    const bool named_npy = path.ends_with(".npy");
    throw FormatError(path + ": the file has no header; give its dtype, for example float32" +
                      (named_npy ? " (the name ends in .npy, but the .npy magic is missing)" : ""));
  }
  Layout layout;
  layout.format = kWord;
  layout.dtype = *description.dtype;
  layout.fortran_order = description.fortran_order.value_or(false);
  layout.data_offset_bytes = description.offset_bytes.value_or(0);
  if (description.shape) {
    layout.shape = *description.shape;
  } else {
    layout.shape = {
        count_elements(layout.dtype.itemsize_bytes, layout.data_offset_bytes, file_bytes, path)};
  }
  layout = make_layout(std::move(layout), path);
  check_fits(layout, file_bytes, path);
  return layout;
}

}  // namespace lowtide::raw
