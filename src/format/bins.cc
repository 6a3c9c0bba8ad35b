// The vectors of big-ann-benchmarks and DiskANN: the number of rows and of columns, as uint32, and
// then the values. The type is in the name of the file. The size must be what the two numbers say.
#include <utility>

#include "format/array_format.h"
#include "lowtide/error.h"

namespace lowtide::bins {
namespace {

constexpr std::uint64_t kHeaderBytes = 8;

bool matches(const ArrayFormat& format, const ArraySource& source) {
  return source.path.ends_with(format.suffix);
}

Layout open(const ArrayFormat& format, const ArraySource& source) {
  if (source.file_bytes < kHeaderBytes) {
    throw FormatError(source.path + ": expected the numbers of rows and columns in bytes 0 to 7, " +
                      "found the end at byte " + std::to_string(source.file_bytes));
  }
  const std::string header = read_text(source, 0, kHeaderBytes);
  Layout layout;
  layout.dtype = DType::parse(format.dtype);
  layout.shape = {little_at(header, 0, 4), little_at(header, 4, 4)};
  layout.data_offset_bytes = kHeaderBytes;
  layout = make_layout(std::move(layout), source.path);
  const std::uint64_t found = source.file_bytes - kHeaderBytes;
  if (layout.data_bytes == found) return layout;
  throw FormatError(source.path + ": expected " + std::to_string(layout.data_bytes) +
                    " bytes of data at byte 8 for the " + std::to_string(layout.shape[0]) +
                    " rows of " + std::to_string(layout.shape[1]) +
                    " values in its header, found " + std::to_string(found));
}

constexpr ArrayFormat kEntries[] = {
    {.word = "fbin", .suffix = ".fbin", .dtype = "<f4", .matches = matches, .open = open},
    {.word = "ibin", .suffix = ".ibin", .dtype = "<i4", .matches = matches, .open = open},
    {.word = "u8bin", .suffix = ".u8bin", .dtype = "|u1", .matches = matches, .open = open},
    {.word = "i8bin", .suffix = ".i8bin", .dtype = "|i1", .matches = matches, .open = open},
};

}  // namespace

extern const std::span<const ArrayFormat> kFormats;  // for the list of registry.cc
constinit const std::span<const ArrayFormat> kFormats = kEntries;

}  // namespace lowtide::bins
