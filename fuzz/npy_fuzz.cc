// npy_fuzz.cc - any bytes as a .npy file, as a descr and as a file of unknown format: the result is
// a FormatError or a Layout that keeps its promises. Seed corpus: tests/golden/npy.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "format/descr.h"
#include "format/npy.h"
#include "format/registry.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// assert() is compiled out of release builds, but a broken promise must stop the fuzzer.
void require(bool promise) {
  if (!promise) std::abort();
}

void check_dtype(const DType& type) {
  require(type.kind != 'O');
  require(parse_descr(type.descr()) == type);
  std::uint64_t end_bytes = 0;
  for (const Field& field : type.fields) {
    require(field.offset_bytes == end_bytes);
    end_bytes += field.type.itemsize_bytes;
    check_dtype(field.type);
  }
  if (!type.fields.empty()) require(end_bytes == type.itemsize_bytes);
}

void check_layout(const Layout& layout) {
  require(layout.dtype.element.empty());
  require(layout.shape.size() <= kMaxAxes);
  require(!layout.fortran_order || layout.shape.size() > 1);
  __extension__ using Wide = unsigned __int128;
  Wide bytes = layout.dtype.itemsize_bytes;
  if (std::ranges::find(layout.shape, 0u) != layout.shape.end()) bytes = 0;
  for (const std::uint64_t length : layout.shape) {
    bytes *= length;
    require(bytes < Wide{1} << 63);
  }
  require(bytes == layout.data_bytes);
  check_dtype(layout.dtype);
}

template <typename Function>
void allow_format_error(Function&& function) {
  try {
    function();
  } catch (const FormatError& error) {
    require(std::strlen(error.what()) < 4096);
  }
}

void fuzz(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  allow_format_error([&] {
    const Layout layout = npy::parse(bytes, std::nullopt, "f");
    require(layout.data_offset_bytes <= bytes.size());
    check_layout(layout);
  });
  allow_format_error([&] { check_dtype(parse_descr(text)); });
  const ReadStart read = [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
    require(offset_bytes <= bytes.size() && out.size() <= bytes.size() - offset_bytes);
    std::ranges::copy(bytes.subspan(offset_bytes, out.size()), out.begin());
  };
  allow_format_error([&] { check_layout(open_layout("f", bytes.size(), read, {})); });
  raw::Description given;
  if (!npy::has_magic(bytes)) given.dtype = DType::parse("<u2");
  allow_format_error([&] {
    const Layout layout = open_layout("f", bytes.size(), read, given);
    require(layout.data_bytes <= bytes.size() - layout.data_offset_bytes);
    check_layout(layout);
  });
}

}  // namespace
}  // namespace lowtide

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lowtide::fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
