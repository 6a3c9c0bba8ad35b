// golden.h - files that other tools made, for tests.
#pragma once

#include <filesystem>

namespace lowtide {

// In golden.cc, the only file that knows the path of this tree: all others compile to the same
// bytes in every clone, so a compiler cache serves them all.
std::filesystem::path golden(const char* folder);

}  // namespace lowtide
