// npy.h - the .npy format, versions 1 to 3. Pure: it parses bytes and opens nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/layout.h"

namespace lowtide::npy {

constexpr std::string_view kWord = "npy";
constexpr std::uint64_t kPreambleBytes = 12;            // enough to know how long the header is
constexpr std::uint64_t kMaxHeaderBytes = 1024 * 1024;  // a longer header text is refused

// Whether the file starts with the magic "\x93NUMPY".
[[nodiscard]] bool has_magic(std::span<const std::byte> start);

// How many bytes at the start of the file hold the preamble and the header. `start` is the first
// kPreambleBytes of the file, or all of a shorter one. Throws FormatError for a missing magic, a
// truncated file, an unknown version, or a header above kMaxHeaderBytes.
[[nodiscard]] std::uint64_t header_bytes(std::span<const std::byte> start, const std::string& path);

// Parses the header. `start` holds at least header_bytes(); `file_bytes` is the size of the whole
// file, or nullopt if it is unknown. Throws FormatError, which names `path`, what was expected and
// what was found. It never reads outside `start`, never recurses deeper than 32 levels, and checks
// every multiplication. Data that is shorter than the shape promises is an error; bytes after the
// data are allowed, as in NumPy.
[[nodiscard]] Layout parse(std::span<const std::byte> start,
                           std::optional<std::uint64_t> file_bytes, const std::string& path);

}  // namespace lowtide::npy
