// array_format.h - an array format's side of the contract: what it says about itself, and what it
// gets.
//
// Each format defines, in a namespace of its own, `kFormats`: one entry, or several for a family of
// files that differ only in their type. The namespace has one line in the list of registry.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/registry.h"

namespace lowtide {

constexpr std::uint64_t kArrayStartBytes = 12;  // enough for every format's magic
constexpr std::size_t kMaxMembers = 1 << 18;    // arrays in one file; more are refused

// Everything is borrowed for one call of a format.
struct ArraySource {
  const std::string& path;
  std::uint64_t file_bytes;
  const ReadStart& read;
  std::span<const std::byte> start;  // the first kArrayStartBytes, or all of a shorter file
};

// What Lowtide knows about a format; nobody else knows its name.
struct ArrayFormat {
  std::string_view word;             // Layout::format
  std::string_view suffix = {};      // of its files, if they are recognised by their name
  std::string_view dtype = {};       // of its elements, if all files of the format have the same
  std::string_view key_suffix = {};  // may follow a key: "weights.npy" is "weights"
  // Whether a dtype that the caller gives must agree with the header, even without a key.
  // Otherwise a dtype without a key says that the bytes are raw data.
  bool binding = false;

  // Whether the file has the magic, or the name, of this format. Never throws FormatError.
  bool (*matches)(const ArrayFormat& format, const ArraySource& source);
  // Of the one array in the file, which has no name. Throws FormatError. nullptr: see `members`.
  Layout (*open)(const ArrayFormat& format, const ArraySource& source) = nullptr;
  // All arrays in the file. With `key`, only members whose names fit it need a layout. Throws
  // FormatError if the file as a whole is wrong.
  std::vector<ArrayMember> (*members)(const ArrayFormat& format, const ArraySource& source,
                                      const std::optional<std::string>& key) = nullptr;
};

// Whether a member is what the caller means by `key`.
[[nodiscard]] bool has_key(const ArrayFormat& format, std::string_view name, std::string_view key);

// Reads [offset_bytes, offset_bytes + size_bytes) in pieces that ReadStart allows. The caller has
// checked that they are inside the file.
[[nodiscard]] std::string read_text(const ArraySource& source, std::uint64_t offset_bytes,
                                    std::uint64_t size_bytes);

// The little-endian integer of `bytes` bytes at `at`. Requires that they are inside the text.
[[nodiscard]] std::uint64_t little_at(std::string_view text, std::size_t at, std::size_t bytes);

}  // namespace lowtide
