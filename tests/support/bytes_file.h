// bytes_file.h - a file in memory, for tests of formats.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/registry.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide {

// A read outside the file, or of more than ReadStart allows, is a fault of the caller.
struct BytesFile {
  std::string path;
  std::string bytes;

  static BytesFile load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {path, {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}};
  }

  [[nodiscard]] ReadStart reader() const {
    return [this](std::uint64_t offset_bytes, std::span<std::byte> out) {
      constexpr std::uint64_t kMostBytes = 1025 * 1024;
      if (offset_bytes > bytes.size() || out.size() > bytes.size() - offset_bytes)
        throw std::logic_error("read outside the file");
      if (out.size() > kMostBytes) throw std::logic_error("read of too many bytes");
      std::memcpy(out.data(), bytes.data() + offset_bytes, out.size());
    };
  }

  [[nodiscard]] Layout open(std::optional<std::string> key = std::nullopt) const {
    raw::Description given;
    given.key = std::move(key);
    return open_layout(path, bytes.size(), reader(), given);
  }
  [[nodiscard]] std::vector<ArrayMember> members() const {
    return array_members(path, bytes.size(), reader());
  }
  // What opening it throws.
  [[nodiscard]] std::string error(const std::optional<std::string>& key = std::nullopt) const {
    return thrown<FormatError>([&] { return open(key).format; });
  }
};

// A number as little-endian bytes.
inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

}  // namespace lowtide
