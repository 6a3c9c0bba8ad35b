// local_path.h - what only local files have (a page cache, a disk) is not asked about objects.
#pragma once

#include <cerrno>
#include <optional>
#include <string>

#include "http/address.h"
#include "lowtide/error.h"

namespace lowtide {

// Throws IoError(ENOTSUP) for the address of an object, without showing its secrets.
inline void require_local(const std::string& path) {
  if (!is_address(path)) return;
  throw IoError(ENOTSUP, "open", shown_address(path), std::nullopt,
                "objects on servers can be opened and read, but only local files are examined");
}

}  // namespace lowtide
