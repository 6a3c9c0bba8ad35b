// storage.h - what the file system of a path means for reading it.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/command/doctor.h"

namespace lowtide {

struct StorageWords {
  FactState state = FactState::unknown;
  std::string detail;
  std::string advice;
};

// `type` as in mountinfo: "ext4", "nfs4", "fuse.sshfs".
[[nodiscard]] StorageWords storage_words(std::string_view type);

}  // namespace lowtide
