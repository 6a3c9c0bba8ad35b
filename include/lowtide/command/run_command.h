// run_command.h - runs another program to its end, as a shell would.
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

// How the program ended.
struct CommandEnd {
  // Its own exit code; 128 + n if signal n ended it; 127 if it was not found; 126 if it is not
  // executable.
  int exit_code = 0;
  std::string error;  // why it could not be started; empty: it ran
};

// Runs the program with the caller's stdin, stdout and stderr. `started` is called with its process
// id before it executes its first instruction.
//
// - Signals: SIGINT, SIGTERM, SIGHUP and SIGQUIT that reach only this process are forwarded; a
//   terminal sends its own to both. Signals that were ignored before stay ignored.
// - Processes: the program does not outlive this process (PR_SET_PDEATHSIG). Orphans below it
//   become children of this process until it ends. Every child of this process that ends during the
//   call is reaped.
//
// Call it on the main thread only. Throws std::invalid_argument without arguments, and whatever
// `started` throws; then nothing is left running.
[[nodiscard]] CommandEnd run_command(const CommandOptions& options,
                                     const std::function<void(int pid)>& started = {});

}  // namespace lowtide
