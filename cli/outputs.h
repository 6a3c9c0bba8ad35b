// outputs.h - checks where a report is to be written.
#pragma once

#include <string>
#include <vector>

namespace lowtide::cli {

// A program may run for days, so a report that could not be written at its end is refused before
// it starts. The name must end in one of `suffixes`, and the folder must accept a new file.
// Throws std::invalid_argument.
void check_output(const std::string& output, const std::vector<std::string>& suffixes = {
                                                 ".html", ".svg", ".json", ".dat", ".trace"});

}  // namespace lowtide::cli
