// chunk_folder.h - arrays and groups that are folders whose files are chunks (zarr), on the local
// disk or on a server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chunk_folder/folder_files.h"
#include "dataset/chunk_grid.h"
#include "format/registry.h"

namespace lowtide {

// Whether a path is the folder of such an array or group.
[[nodiscard]] bool is_chunk_folder(const std::string& path);
[[nodiscard]] bool is_chunk_folder(const FolderFiles& files);

// The arrays in a group and in the groups in it, with their paths as keys; of a folder that is an
// array itself, that one, with an empty key. Reads only metadata. Throws IoError, and FormatError
// if the folder cannot be read; an array inside that cannot be read has a fault.
[[nodiscard]] std::vector<ArrayMember> folder_members(const std::string& folder);
[[nodiscard]] std::vector<ArrayMember> folder_members(const FolderFiles& files);

// The array in the folder, or the one that given.key names, and the file of each chunk: all of them
// are looked at. What else is given must agree with the metadata. Throws IoError, FormatError, and
// std::invalid_argument if the table needs more than `memory_bytes`.
[[nodiscard]] LocatedArray locate_folder(const std::string& folder, const raw::Description& given,
                                         std::uint64_t memory_bytes);
[[nodiscard]] LocatedArray locate_folder(const FolderFiles& files, const raw::Description& given,
                                         std::uint64_t memory_bytes);

}  // namespace lowtide
