// Tokens in a .npy file: a header of npy.h and integers on one axis. Refuses more than one axis and
// anything but little-endian integers.
#include <vector>

#include "format/npy.h"
#include "lowtide/error.h"
#include "token_format/token_source.h"

namespace lowtide::npy_tokens {
namespace {

bool matches(const TokenSource& source) {
  return npy::has_magic(source.start);
}

TokenLayout open(const TokenSource& source) {
  const TokenFile& file = source.file;
  std::vector<std::byte> header(
      std::min(npy::header_bytes(source.start, file.path), file.file_bytes));
  file.read(0, header);
  const Layout layout = npy::parse(header, file.file_bytes, file.path);
  check_token_dtype(layout.dtype, file.path);
  if (layout.shape.size() != 1) {
    throw FormatError(file.path + ": expected tokens on one axis, found shape " +
                      shape_text(layout.shape));
  }
  check_given_dtype(source.given, layout.dtype, file.path);
  return one_extent(file.path, layout.dtype, layout.data_offset_bytes, layout.shape[0]);
}

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{
    .word = npy::kWord, .suffix = ".npy", .matches = matches, .open = open};

}  // namespace lowtide::npy_tokens
