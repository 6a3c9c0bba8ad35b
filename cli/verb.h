// verb.h - what a verb of the command is. A verb is one file, one line in cli/verbs.cc and one in
// cli/CMakeLists.txt; help, completion and man page come from its options.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

// What every verb ends with. A wrapped program's own code is passed on instead.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

struct Call {
  std::vector<std::string> command;  // of a verb that wraps a program: all words from it on
};

// Called once the options are parsed; returns the exit code. May throw: IoError and FormatError
// become exit 1 (a file that is not there: 2), std::invalid_argument and UsageError exit 2, all
// told on stderr behind "lowtide VERB: ".
using Run = std::function<int(const Call& call)>;

struct Verb {
  const char* name;
  const char* summary;  // one line, no full stop
  const char* example;  // shown by --help: "lowtide info train.bin"; lines are separate examples
  bool wraps_program;   // takes PROGRAM ARGUMENTS... (program.h)
  // Adds options and files to `app`. What they are parsed into is held by the Run that it returns.
  Run (*add)(CLI::App& app);
};

// All of them, in the order of the help.
[[nodiscard]] std::span<const Verb> verbs();

// One each, in the file of its name.
[[nodiscard]] Run add_bench(CLI::App& app);
[[nodiscard]] Run add_cache(CLI::App& app);
[[nodiscard]] Run add_check(CLI::App& app);
[[nodiscard]] Run add_completion(CLI::App& app);
[[nodiscard]] Run add_demo(CLI::App& app);
[[nodiscard]] Run add_doctor(CLI::App& app);
[[nodiscard]] Run add_guard(CLI::App& app);
[[nodiscard]] Run add_help(CLI::App& app);
[[nodiscard]] Run add_info(CLI::App& app);
[[nodiscard]] Run add_profile(CLI::App& app);

}  // namespace lowtide::cli
