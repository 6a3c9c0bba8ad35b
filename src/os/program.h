// program.h - program files: where they are, and whether a library can be preloaded into them.
#pragma once

#include <string>

namespace lowtide {

// The file that execvp would run: a name with a slash is itself, another is looked for on PATH.
// Empty where there is none that may be executed.
[[nodiscard]] std::string find_program(const std::string& name);

// Why LD_PRELOAD would not work for the program at `path`, as "is statically linked"; empty where
// it works, or where it cannot be told. Of a script its interpreter is looked at.
[[nodiscard]] std::string preload_obstacle(const std::string& path);

// The file that this process runs; empty where /proc does not tell.
[[nodiscard]] std::string executable_path();

}  // namespace lowtide
