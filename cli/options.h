// options.h - the option tree as words: what help, man page and completion are made from.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

struct Verb;

struct OptionWords {
  std::vector<std::string> names;  // "-o", "--output"; of a positional only its word
  std::string value;               // the word for what it takes; empty: a flag
  std::string description;
  bool positional = false;

  [[nodiscard]] std::string usage() const;  // "-o, --output FILE"
};

[[nodiscard]] std::vector<OptionWords> options_of(const CLI::App& app);  // positionals first
[[nodiscard]] std::vector<const CLI::App*> subcommands_of(const CLI::App& app);
[[nodiscard]] std::string usage_of(const CLI::App& app);  // "lowtide info [options] FILE..."

// nullptr: there is no such verb.
[[nodiscard]] const Verb* find_verb(const std::string& name);
// The sentence that refuses a verb that there is not; it names the one that was probably meant.
[[nodiscard]] std::string no_verb(const std::string& word);
// The one of `known` that was probably meant; empty where none is near.
[[nodiscard]] std::string nearest_word(const std::string& word,
                                       const std::vector<std::string>& known);

}  // namespace lowtide::cli
