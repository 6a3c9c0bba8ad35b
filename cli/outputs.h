// outputs.h - checks where a report is to be written.
#pragma once

#include <string>

namespace lowtide::cli {

// A program may run for days, so a report that could not be written at its end is refused before
// it starts. Recording::save must support the suffix, and the folder must accept a new file.
// Throws std::invalid_argument.
void check_output(const std::string& output);

}  // namespace lowtide::cli
