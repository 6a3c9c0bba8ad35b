// outputs.h - where a report is to be written.
#pragma once

#include <string>

namespace lowtide::cli {

// A program may run for days: what would fail at its end fails before it starts. The suffix must be
// one that Recording::save knows, and a file must fit into the folder. Throws
// std::invalid_argument.
void check_output(const std::string& output);

}  // namespace lowtide::cli
