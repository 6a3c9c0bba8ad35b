// verb.h - one verb of the command. A verb is one file, one line in cli/verbs.cc and one in
// cli/CMakeLists.txt; help, shell completion and man page are generated from its options.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

// The exit codes of every verb. A verb that wraps a program returns the program's code instead.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

struct Call {
  std::vector<std::string> command;  // the wrapped program and its arguments, if the verb takes one
};

// Called once the options are parsed; returns the exit code. May throw: IoError and FormatError
// become exit 1 (a missing file: 2), std::invalid_argument becomes exit 2. The message goes to
// stderr after "lowtide VERB: ".
using Action = std::function<int(const Call& call)>;

struct Verb {
  const char* name;
  const char* summary;  // one line, no full stop
  const char* example;  // shown by --help: "lowtide info train.bin"; each line is one example
  bool wraps_program;   // takes PROGRAM ARGUMENTS... (program.h)
  // Adds options and files to `app`. The returned Action owns the variables they are parsed into.
  Action (*add)(CLI::App& app);
};

// All verbs, in the order in which the help lists them.
[[nodiscard]] std::span<const Verb> verbs();

// Each is defined in the file named after the verb.
[[nodiscard]] Action add_bench(CLI::App& app);
[[nodiscard]] Action add_cache(CLI::App& app);
[[nodiscard]] Action add_check(CLI::App& app);
[[nodiscard]] Action add_completion(CLI::App& app);
[[nodiscard]] Action add_convert(CLI::App& app);
[[nodiscard]] Action add_demo(CLI::App& app);
[[nodiscard]] Action add_doctor(CLI::App& app);
[[nodiscard]] Action add_guard(CLI::App& app);
[[nodiscard]] Action add_help(CLI::App& app);
[[nodiscard]] Action add_info(CLI::App& app);
[[nodiscard]] Action add_merge(CLI::App& app);
[[nodiscard]] Action add_profile(CLI::App& app);
[[nodiscard]] Action add_shuffle(CLI::App& app);

}  // namespace lowtide::cli
