// npy.h - the .npy format, versions 1 to 3. Pure: it sees bytes and opens nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "format/layout.h"

namespace lowtide::npy {

constexpr std::uint64_t kPreambleBytes = 12;            // enough to know how long the header is
constexpr std::uint64_t kMaxHeaderBytes = 1024 * 1024;  // of header text; more is refused

// Whether the file starts with the magic "\x93NUMPY".
[[nodiscard]] bool has_magic(std::span<const std::byte> start);

// How many bytes from the start of the file hold preamble and header, from the first kPreambleBytes
// (or the whole file if it is shorter). Throws FormatError: no magic, truncated, unknown version,
// more than kMaxHeaderBytes.
[[nodiscard]] std::uint64_t header_bytes(std::span<const std::byte> start, const std::string& path);

// Reads the header. `start` holds at least header_bytes(); `file_bytes` is the size of the whole
// file, or nullopt when it is not known. Throws FormatError that names `path`, what was expected
// and what was found; never reads outside `start`, never recurses deeper than 32, never multiplies
// without a check. Data shorter than the shape promises is an error; bytes after the data are
// allowed, as NumPy allows them.
[[nodiscard]] Layout parse(std::span<const std::byte> start,
                           std::optional<std::uint64_t> file_bytes, const std::string& path);

}  // namespace lowtide::npy
