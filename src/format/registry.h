// registry.h - which format a file is in, recognised by its first bytes and never by its name.
//
// A format is one file in this room and one line in the table of registry.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// The layout of the file according to its header or, if it has none, to the caller. `given` must
// agree with a header. Throws FormatError, which names `path`, what was expected and what was
// found, also for an empty file and, without a dtype, for a file of another tool (foreign.h).
[[nodiscard]] Layout open_layout(const std::string& path, std::uint64_t file_bytes,
                                 const ReadStart& read, const raw::Description& given);

// The words of all array formats: values of Layout::format.
[[nodiscard]] std::vector<std::string_view> array_words();
// Whether a file that starts with these bytes has the header of an array.
[[nodiscard]] bool has_array_header(std::span<const std::byte> start);
// Whether files of this format describe themselves; otherwise the caller does.
[[nodiscard]] bool has_header(std::string_view format);

}  // namespace lowtide
