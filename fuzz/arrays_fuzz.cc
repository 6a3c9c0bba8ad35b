// arrays_fuzz.cc - any bytes as a file of each array format: safetensors, npz, vectors. The result
// is a FormatError or layouts that are inside the file and keep their promises. Seed corpus:
// tests/golden/arrays.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "format/json_reader.h"
#include "format/registry.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// assert() is compiled out of release builds, but a broken promise must stop the fuzzer.
void require(bool promise) {
  if (!promise) std::abort();
}

void check_layout(const Layout& layout, std::uint64_t file_bytes) {
  require(layout.shape.size() <= kMaxAxes);
  const std::uint64_t rows = layout.shape.empty() ? 1 : layout.shape[0];
  const std::uint64_t between =
      rows == 0 ? 0 : (rows - 1) * static_cast<std::uint64_t>(layout.row_prefix.size());
  require(layout.data_offset_bytes <= file_bytes);
  require(layout.data_bytes <= file_bytes - layout.data_offset_bytes);
  require(between <= file_bytes - layout.data_offset_bytes - layout.data_bytes);
  require(layout.data_offset_bytes >= layout.row_prefix.size());
}

template <typename Function>
void allow_format_error(Function&& function) {
  try {
    function();
  } catch (const FormatError& error) {
    require(std::string_view(error.what()).size() < 4096);
  }
}

void fuzz_as(const std::string& path, std::span<const std::byte> bytes) {
  const ReadStart read = [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
    require(offset_bytes <= bytes.size() && out.size() <= bytes.size() - offset_bytes);
    std::ranges::copy(bytes.subspan(offset_bytes, out.size()), out.begin());
  };
  allow_format_error(
      [&] { check_layout(open_layout(path, bytes.size(), read, {}), bytes.size()); });
  std::vector<ArrayMember> members;
  allow_format_error([&] { members = array_members(path, bytes.size(), read); });
  members.resize(std::min<std::size_t>(members.size(), 16));
  for (const ArrayMember& member : members) {
    raw::Description given;
    given.key = member.key;
    const auto open = [&] { return open_layout(path, bytes.size(), read, given); };
    if (member.fault.empty()) check_layout(member.layout, bytes.size());
    allow_format_error([&] { check_layout(open(), bytes.size()); });
  }
}

void fuzz(std::span<const std::byte> bytes) {
  for (const char* const path :
       {"f", "f.safetensors", "f.npz", "f.fbin", "f.u8bin", "f.fvecs", "f.bvecs"}) {
    fuzz_as(path, bytes);
  }
  allow_format_error([&] {
    JsonReader json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    json.skip();
    json.end();
  });
}

}  // namespace
}  // namespace lowtide

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lowtide::fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
