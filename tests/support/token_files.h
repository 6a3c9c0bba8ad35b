// token_files.h - token files in memory, opened as open_token_layout opens them, and the bytes that
// their formats are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"
#include "token_format/tokens.h"

namespace lowtide {

template <typename Integer>
std::string little_endian(Integer value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
  }
  return out;
}

template <typename Integer>
std::string little_endian(const std::vector<Integer>& values) {
  std::string out;
  for (const Integer value : values) out += little_endian(value);
  return out;
}

// The parts of a Megatron index; counts may lie.
struct MegatronIndex {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  std::uint64_t version = 1;
  std::uint8_t code = 8;
  std::vector<std::int32_t> lengths = {};
  std::vector<std::int64_t> pointers = {};
  std::vector<std::int64_t> boundaries = {};
  std::string modes = {};
  std::optional<std::uint64_t> sequences = std::nullopt;       // else the number of lengths
  std::optional<std::uint64_t> boundary_count = std::nullopt;  // else their number

  [[nodiscard]] std::string bytes() const {
    return magic + little_endian(version) + static_cast<char>(code) +
           little_endian(sequences.value_or(lengths.size())) +
           little_endian(boundary_count.value_or(boundaries.size())) + little_endian(lengths) +
           little_endian(pointers) + little_endian(boundaries) + modes;
  }
};

// A read outside a file, or of more than 1 MiB, is a fault of the reader.
class TokenFolder {
 public:
  // Behind `bytes` the file goes on with zeros up to `file_bytes`, where that is given.
  void write(const std::string& path, std::string bytes,
             std::optional<std::uint64_t> file_bytes = std::nullopt) {
    const std::uint64_t size_bytes = file_bytes.value_or(bytes.size());
    files_[path] = {std::move(bytes), size_bytes};
  }
  void remove(const std::string& path) { files_.erase(path); }

  [[nodiscard]] std::optional<TokenFile> find(const std::string& path) {
    const auto at = files_.find(path);
    if (at == files_.end()) return std::nullopt;
    const Held& held = at->second;
    return TokenFile{path, held.file_bytes,
                     [this, &held](std::uint64_t offset_bytes, std::span<std::byte> out) {
                       read(held, offset_bytes, out);
                     }};
  }

  TokenLayout open(const std::string& path, const TokenGiven& given = {}) {
    return open_token_layout(
        find(path).value(), [this](const std::string& other) { return find(other); }, given);
  }

  // The text of the FormatError.
  std::string error(const std::string& path, const TokenGiven& given = {}) {
    return thrown<FormatError>([&] { return open(path, given).format; });
  }

  std::uint64_t most_read_bytes = 0;  // in one call
  std::uint64_t read_bytes = 0;       // in all calls

 private:
  struct Held {
    std::string bytes;
    std::uint64_t file_bytes = 0;
  };

  void read(const Held& held, std::uint64_t offset_bytes, std::span<std::byte> out) {
    if (offset_bytes > held.file_bytes || out.size() > held.file_bytes - offset_bytes) {
      throw std::logic_error("read outside the file");
    }
    if (out.size() > 1024 * 1024) throw std::logic_error("read of more than 1 MiB");
    most_read_bytes = std::max<std::uint64_t>(most_read_bytes, out.size());
    read_bytes += out.size();
    std::ranges::fill(out, std::byte{0});
    if (offset_bytes >= held.bytes.size()) return;
    std::memcpy(out.data(), held.bytes.data() + offset_bytes,
                std::min<std::uint64_t>(out.size(), held.bytes.size() - offset_bytes));
  }

  std::map<std::string, Held> files_;
};

inline TokenGiven given_dtype(const std::string& dtype) {
  return {.dtype = DType::parse(dtype), .format = std::nullopt};
}

inline TokenGiven given_format(const std::string& format) {
  return {.dtype = std::nullopt, .format = format};
}

}  // namespace lowtide
