// program.h - program files: where they are, and whether a library can be preloaded into them.
#pragma once

#include <string>

namespace lowtide {

// The file that execvp would run: a name with a slash stands for itself, any other is searched on
// PATH. Empty if there is none that may be executed.
[[nodiscard]] std::string find_program(const std::string& name);

// Why LD_PRELOAD would not work for the program at `path`, such as "is statically linked"; empty if
// it works or if that is unknown. For a script, its interpreter is examined.
[[nodiscard]] std::string preload_obstacle(const std::string& path);

// The file that this process runs; empty if /proc does not report it.
[[nodiscard]] std::string executable_path();

}  // namespace lowtide
