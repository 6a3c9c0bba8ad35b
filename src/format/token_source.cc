#include "format/token_source.h"

#include "core/token_type.h"
#include "lowtide/error.h"

namespace lowtide {

std::span<const std::byte> read_token_start(const TokenFile& file,
                                            std::array<std::byte, kTokenStartBytes>* room) {
  const std::span<std::byte> start =
      std::span(*room).first(std::min<std::uint64_t>(file.file_bytes, kTokenStartBytes));
  if (!start.empty()) file.read(0, start);
  return start;
}

void check_token_dtype(const DType& dtype, const std::string& path) {
  if (token_type(dtype)) return;
  const bool integer = dtype.kind == 'u' || dtype.kind == 'i';
  throw FormatError(path + ": expected tokens of " + (integer ? "a little-endian" : "an integer") +
                    " type such as uint16 or uint32, found dtype " + dtype.descr());
}

void check_given_dtype(const TokenGiven& given, const DType& header, const std::string& path) {
  if (!given.dtype || *given.dtype == header) return;
  throw FormatError(path + ": dtype " + given.dtype->descr() + " was given, but the header says " +
                    header.descr());
}

TokenLayout one_extent(const std::string& path, const DType& dtype, std::uint64_t offset_bytes,
                       std::uint64_t tokens) {
  TokenLayout layout;
  layout.data_path = path;
  layout.dtype = dtype;
  if (tokens > 0) {
    layout.extents.push_back({.offset_bytes = offset_bytes, .tokens = tokens, .first_sequence = 0});
  }
  return layout;
}

}  // namespace lowtide
