// token_source.h - what a token format is given, and the checks that all of them share.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "format/tokens.h"

namespace lowtide {

constexpr std::size_t kTokenStartBytes = 12;  // enough for every format's magic

// Borrows all of it, for one call of a format.
struct TokenSource {
  const TokenFile& file;
  std::span<const std::byte> start;  // the first kTokenStartBytes, or all of a shorter file
  const OpenBeside& beside;
  const TokenGiven& given;
};

// The first kTokenStartBytes of a file, or all of a shorter one, in `room`.
[[nodiscard]] std::span<const std::byte> read_token_start(
    const TokenFile& file, std::array<std::byte, kTokenStartBytes>* room);

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The little-endian integer at `at`, which need not be aligned.
template <typename Integer>
[[nodiscard]] Integer load_little(const std::byte* at) {
  std::array<std::byte, sizeof(Integer)> bytes;
  std::memcpy(bytes.data(), at, sizeof(Integer));
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
  return std::bit_cast<Integer>(bytes);
}

// Throws FormatError unless tokens can have this type: a little-endian integer, or one of one byte.
void check_token_dtype(const DType& dtype, const std::string& path);

// Throws FormatError unless the caller said nothing or the same as the header.
void check_given_dtype(const TokenGiven& given, const DType& header, const std::string& path);

// `tokens` of `dtype` from `offset_bytes` on, one run or none. The total is left to the registry.
[[nodiscard]] TokenLayout one_run(std::string_view format, const std::string& path,
                                  const DType& dtype, std::uint64_t offset_bytes,
                                  std::uint64_t tokens);

}  // namespace lowtide
