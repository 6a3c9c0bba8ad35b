// golden.h - files that other tools made, for tests.
#pragma once

#include <filesystem>

namespace lowtide {

inline std::filesystem::path golden(const char* folder) {
  return std::filesystem::path(LOWTIDE_TESTS_FOLDER) / "golden" / folder;
}

}  // namespace lowtide
