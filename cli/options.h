// options.h - the option tree as text, from which help, man page and completion are generated.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

struct Verb;

struct OptionWords {
  std::vector<std::string> names;  // "-o", "--output"; a positional has only its placeholder
  std::string value;               // the placeholder of its value; empty: a flag
  std::string description;
  bool positional = false;

  [[nodiscard]] std::string usage() const;  // "-o, --output FILE"
};

[[nodiscard]] std::vector<OptionWords> options_of(const CLI::App& app);  // positionals first
[[nodiscard]] std::vector<const CLI::App*> subcommands_of(const CLI::App& app);
[[nodiscard]] std::string usage_of(const CLI::App& app);  // "lowtide info [options] FILE..."

// nullptr: there is no such verb.
[[nodiscard]] const Verb* find_verb(const std::string& name);
// The error message for an unknown verb; it suggests the verb that was probably meant.
[[nodiscard]] std::string no_verb(const std::string& word);
// The entry of `known` that was probably meant; empty if none is close.
[[nodiscard]] std::string nearest_word(const std::string& word,
                                       const std::vector<std::string>& known);

}  // namespace lowtide::cli
