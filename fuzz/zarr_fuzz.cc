// zarr_fuzz.cc - any bytes as the metadata of a zarr array of both versions, and the rest of them
// as the index of a shard. The result is a FormatError or an array that keeps its promises. Seed
// corpus: tests/golden/zarr.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "chunk_format/chunked_array.h"
#include "core/checked.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// assert() is compiled out of release builds, but a broken promise must stop the fuzzer.
void require(bool promise) {
  if (!promise) std::abort();
}

void check_array(const ChunkedArray& array) {
  require(array.layout.shape.size() <= kMaxAxes);
  require(array.chunk_shape.size() == array.layout.shape.size());
  require(array.file_shape.size() == array.layout.shape.size());
  require(std::ranges::find(array.chunk_shape, 0U) == array.chunk_shape.end());
  require(array.fill.empty() || array.fill.size() == array.layout.dtype.itemsize_bytes);
  require(array.index || array.file_shape == array.chunk_shape);
  const std::string name = array.file_name(array.chunk_shape);
  require(!name.empty() && name.find("..") == std::string::npos && !name.starts_with('/'));
}

void check_index(const ChunkedArray& array, std::span<const std::byte> bytes) {
  const std::uint64_t size = array.index->size_bytes();
  if (size > bytes.size()) return;
  for (const std::uint64_t offset :
       parse_shard_index(array, bytes.first(size), bytes.size(), "shard")) {
    require(offset == UINT64_MAX || fits_inside(offset, array.chunk_bytes, bytes.size()));
  }
}

void fuzz(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string_view file : metadata_files()) {
    try {
      const auto array = parse_metadata(text, file, "path");
      if (!array) continue;
      check_array(*array);
      if (array->index) check_index(*array, bytes);
    } catch (const FormatError& error) {
      require(std::string_view(error.what()).size() < 8192);
    }
  }
}

}  // namespace
}  // namespace lowtide

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lowtide::fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
