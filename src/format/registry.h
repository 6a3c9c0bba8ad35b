// registry.h - which format a file is in, told by its first bytes and never by its name.
//
// A format is one file in this room and one line in the table of registry.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "format/layout.h"
#include "format/raw.h"

namespace lowtide {

// Fills all of `out` from byte `offset_bytes` of the file. Called only for bytes inside the file,
// and for at most npy::kMaxHeaderBytes and a few more; what it throws passes through.
using ReadStart = std::function<void(std::uint64_t offset_bytes, std::span<std::byte> out)>;

// The layout of the file, by its header or, where it has none, by what the caller says. `given`
// must agree with a header. Throws FormatError that names `path`, what was expected and what was
// found; an empty file is one, and so is a file of another tool (foreign.h) without a dtype given.
[[nodiscard]] Layout open_layout(const std::string& path, std::uint64_t file_bytes,
                                 const ReadStart& read, const raw::Description& given);

}  // namespace lowtide
