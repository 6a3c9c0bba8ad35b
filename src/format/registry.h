// registry.h - which format a file is in, recognised by its first bytes, and by its name only where
// the bytes say nothing.
//
// A format is one file in this room and one line in the list of registry.cc (array_format.h has its
// side of the contract).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/layout.h"
#include "format/raw.h"

namespace lowtide {

// Fills all of `out` from byte `offset_bytes` of the file. Called only for bytes inside the file,
// and for at most a few bytes more than npy::kMaxHeaderBytes. Its exceptions pass through.
using ReadStart = std::function<void(std::uint64_t offset_bytes, std::span<std::byte> out)>;

// One of several arrays in a file.
struct ArrayMember {
  std::string key;    // UTF-8
  Layout layout;      // with a fault, only its format
  std::string fault;  // why it cannot be read: the message of a FormatError
};

// The layout of the file according to its header or, if it has none, to the caller. `given` must
// agree with a header. Throws FormatError, which names `path`, what was expected and what was
// found, also for an empty file and, without a dtype, for a file of another tool (foreign.h). If
// the file contains several arrays, given.key names one; otherwise FormatError lists the keys.
// Throws std::invalid_argument for a key of a file with one array that has no name.
[[nodiscard]] Layout open_layout(const std::string& path, std::uint64_t file_bytes,
                                 const ReadStart& read, const raw::Description& given);

// All arrays of a file whose format gives them names; empty for other files. Throws FormatError.
[[nodiscard]] std::vector<ArrayMember> array_members(const std::string& path,
                                                     std::uint64_t file_bytes,
                                                     const ReadStart& read);

// The one member that the caller means: that with the key, which may have the suffix, or the only
// one. Throws FormatError, which lists the keys.
[[nodiscard]] const ArrayMember& chosen_member(const std::vector<ArrayMember>& members,
                                               std::string_view key_suffix,
                                               const std::optional<std::string>& key,
                                               const std::string& path);
// Throws FormatError unless what the caller says about an array is what its header says.
void check_agrees(const Layout& layout, const raw::Description& given, const std::string& path);

// The words of all array formats: values of Layout::format.
[[nodiscard]] std::vector<std::string_view> array_words();
// Whether a file has the header, or the name, of an array format.
[[nodiscard]] bool is_array_file(const std::string& path, std::uint64_t file_bytes,
                                 const ReadStart& read);
// Whether files of this format describe themselves; otherwise the caller does.
[[nodiscard]] bool has_header(std::string_view format);

}  // namespace lowtide
