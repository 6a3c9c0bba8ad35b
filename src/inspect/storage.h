// storage.h - what it means for reading that a path lies on this file system or that one.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/doctor.h"

namespace lowtide {

struct StorageWords {
  FactState state = FactState::unknown;
  std::string detail;
  std::string advice;
};

// `type` as mountinfo has it: "ext4", "nfs4", "fuse.sshfs".
[[nodiscard]] StorageWords storage_words(std::string_view type);

}  // namespace lowtide
