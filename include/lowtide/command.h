// command.h - another program, run to its end as a shell would run it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lowtide {

struct CommandOptions {
  std::vector<std::string> arguments;                          // the program first; found on PATH
  std::vector<std::pair<std::string, std::string>> variables;  // added to the environment
};

// How it ended: its own code, 128 + n where signal n ended it, 127 not found, 126 not executable.
struct CommandEnd {
  int exit_code = 0;
  std::string error;  // why it could not be started; empty: it ran
};

// Runs the program with our stdin, stdout and stderr. `started` is called with its process id
// before it executes a single instruction of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT that
// reach us alone are passed on (a terminal sends its own to both); those ignored before stay
// ignored. It does not outlive us (PR_SET_PDEATHSIG); orphans below it become our children until it
// ends, and every child of ours that ends meanwhile is reaped. For a program's main thread only.
// Throws std::invalid_argument without arguments, and what `started` throws, with nothing left
// running.
[[nodiscard]] CommandEnd run_command(const CommandOptions& options,
                                     const std::function<void(int pid)>& started = {});

}  // namespace lowtide
