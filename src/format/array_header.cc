#include "format/array_header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/checked.h"
#include "core/utf8.h"
#include "format/foreign.h"
#include "format/npy.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::string_view kArraySuffix = ".npy";
constexpr std::size_t kGrowthDigits = 21;  // as in numpy.lib.format
constexpr std::uint64_t kAlignment = 64;   // likewise
constexpr std::uint64_t kMostRows = std::numeric_limits<std::int64_t>::max();

std::size_t preamble_size(unsigned major) {
  return major == 1 ? 10 : 12;
}

std::string dict_text(const Layout& layout, std::uint64_t rows) {
  std::vector<std::uint64_t> shape = layout.shape;
  // With several axes NumPy's Fortran order grows along the last one.
  if (!layout.fortran_order) shape[0] = rows;
  return "{'descr': " + layout.dtype.descr() +
         ", 'fortran_order': " + (layout.fortran_order ? "True" : "False") +
         ", 'shape': " + shape_text(shape) + ", }";
}

std::uint64_t header_size(const std::string& dict, const Layout& layout, unsigned major) {
  const std::uint64_t growing = layout.fortran_order ? layout.shape.back() : layout.shape.front();
  const std::size_t digits = std::to_string(growing).size();
  const std::uint64_t used = preamble_size(major) + dict.size() + (kGrowthDigits - digits) + 1;
  return used + kAlignment - used % kAlignment;  // never without padding, as in NumPy
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 128; });
}

}  // namespace

ArrayHeader::ArrayHeader(const DType& dtype, std::vector<std::uint64_t> shape, bool fortran_order,
                         const std::string& path)
    : most_rows_(kMostRows) {
  layout_.format = npy::kWord;
  layout_.dtype = dtype;
  layout_.shape = std::move(shape);
  layout_.fortran_order = fortran_order;
  layout_ = make_layout(std::move(layout_), path);
  const std::string dict = dict_text(layout_, layout_.shape[0]);
  constexpr std::uint64_t kMostOfVersion1 = 65535;
  if (!is_ascii(dict)) {
    major_ = 3;
  } else if (header_size(dict, layout_, 1) - preamble_size(1) > kMostOfVersion1) {
    major_ = 2;
  }
  layout_.data_offset_bytes = header_size(dict, layout_, major_);
  if (layout_.data_offset_bytes - preamble_size(major_) > npy::kMaxHeaderBytes) {
    throw FormatError(path +
                      ": the dtype is too long for a header; use fewer fields or shorter names");
  }
}

ArrayHeader ArrayHeader::of_file(std::uint64_t file_bytes, const ReadStart& read,
                                 const std::string& path) {
  std::vector<std::byte> start(std::min(npy::kPreambleBytes, file_bytes));
  read(0, start);
  start.resize(std::min(npy::header_bytes(start, path), file_bytes));
  read(0, start);
  ArrayHeader header;
  header.layout_ = npy::parse(start, file_bytes, path);
  header.major_ = std::to_integer<unsigned>(start[6]);
  const Layout& layout = header.layout_;
  if (layout.shape.empty()) throw FormatError(path + ": rows cannot be added to a 0-d array");
  if (layout.fortran_order) {
    throw FormatError(path + ": rows cannot be added to an array in Fortran order, because its " +
                      "columns would have to move");
  }
  const std::uint64_t end = layout.data_offset_bytes + layout.data_bytes;
  std::vector<std::byte> after(std::min(npy::kPreambleBytes, file_bytes - end));
  read(end, after);
  if (npy::has_magic(after)) {
    throw FormatError(path + ": rows cannot be added, because another array follows at byte " +
                      std::to_string(end));
  }
  const std::string shortest = dict_text(layout, 0);
  const std::uint64_t capacity = layout.data_offset_bytes - preamble_size(header.major_);
  if ((header.major_ == 3 || is_ascii(shortest)) && shortest.size() + 1 <= capacity) {
    std::uint64_t digits = capacity - shortest.size();
    for (header.most_rows_ = 0; digits > 0 && header.most_rows_ < kMostRows / 10; --digits)
      header.most_rows_ = header.most_rows_ * 10 + 9;
    if (digits > 0) header.most_rows_ = kMostRows;
  }
  // Otherwise it has room for what it says and nothing else.
  header.most_rows_ = std::max(header.most_rows_, layout.shape[0]);
  return header;
}

std::string ArrayHeader::text(std::uint64_t rows) const {
  const std::string dict = dict_text(layout_, rows);
  const std::size_t length = layout_.data_offset_bytes - preamble_size(major_);
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major_);
  text += '\0';
  for (std::size_t i = 0; i < preamble_size(major_) - 8; ++i)
    text += static_cast<char>(length >> (8 * i) & 0xFF);
  text += dict;
  text.resize(layout_.data_offset_bytes - 1, ' ');
  text += '\n';
  return text;
}

std::string_view array_header_word() {
  return npy::kWord;
}

bool can_write_arrays(std::string_view format) {
  return format == npy::kWord || format == raw::kWord;
}

std::string_view array_suffix() {
  return kArraySuffix;
}

void check_array_name(const std::string& path) {
  if (path.ends_with(kArraySuffix)) return;
  if (path.empty()) throw std::invalid_argument("the path is empty: name a .npy file");
  throw std::invalid_argument(path + ": create writes .npy files; use the name " + path +
                              std::string(kArraySuffix));
}

std::vector<std::string> array_files_in(const std::string& folder,
                                        const std::vector<std::string>& names) {
  refuse_foreign_folder(folder, names);
  std::vector<std::string> files;
  for (const std::string& name : names) {
    const bool hidden = name.starts_with('.');
    if (!hidden && name.ends_with(kArraySuffix)) files.push_back(folder + "/" + name);
  }
  return files;
}

}  // namespace lowtide
