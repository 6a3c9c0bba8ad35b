#include "support/golden.h"

namespace lowtide {

std::filesystem::path golden(const char* folder) {
  return std::filesystem::path(LOWTIDE_TESTS_FOLDER) / "golden" / folder;
}

}  // namespace lowtide
