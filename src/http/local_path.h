// local_path.h - the parts of Lowtide that need files of this machine refuse objects on servers.
#pragma once

#include <cerrno>
#include <optional>
#include <string>

#include "lowtide/address.h"
#include "lowtide/error.h"

namespace lowtide {

// Throws IoError(ENOTSUP) for the address of an object, without showing its secrets. `reason` says
// what only local files can do.
inline void require_local(const std::string& path, const std::string& reason) {
  if (is_address(path)) throw IoError(ENOTSUP, "open", shown_address(path), std::nullopt, reason);
}

inline constexpr const char* kExaminesLocal =
    "objects can be opened and read, but only local files can be examined; download the object "
    "first";
inline constexpr const char* kWritesLocal = "only local files are written; upload the result";
inline constexpr const char* kJobsReadLocal =
    "jobs read only local files; download the object first";

}  // namespace lowtide
