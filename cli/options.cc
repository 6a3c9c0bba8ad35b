#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "verb.h"

namespace lowtide::cli {
namespace {

// The edit distance: how many letters to change, add, drop or swap with their neighbour.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const std::size_t change = least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  words.description = option.get_description();
  words.positional = option.get_positional();
  if (words.positional) {
    words.names = {option.get_name(true)};
    if (option.get_items_expected_max() > 1) words.names.front() += "...";
    return words;
  }
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) words.value = option.get_type_name();
  return words;
}

}  // namespace

std::string OptionWords::usage() const {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return value.empty() ? text : text + " " + value;
}

std::vector<OptionWords> options_of(const CLI::App& app) {
  std::vector<OptionWords> all;
  for (const CLI::Option* const option : app.get_options()) {
    const bool hidden = option->get_group().empty();  // only the command itself passes it
    if (!hidden) all.push_back(words_of(*option));
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const OptionWords& words) { return words.positional; });
  return all;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string usage_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  if (parent == nullptr) return "lowtide VERB [options]";
  const Verb* const verb = find_verb(app.get_name());
  const bool wraps = verb != nullptr && verb->wraps_program;
  std::string text = "lowtide " + app.get_name() + " [options]";
  if (wraps) text += " PROGRAM [arguments]";
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = words_of(*option).names.front();
    text += wraps ? " | " + name : option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

const Verb* find_verb(const std::string& name) {
  for (const Verb& verb : verbs()) {
    if (name == verb.name) return &verb;
  }
  return nullptr;
}

std::string no_verb(const std::string& word) {
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) known.emplace_back(verb.name);
  const std::string nearest = nearest_word(word, known);
  return "no verb \"" + word + "\"; " +
         (nearest.empty() ? "lowtide --help lists all verbs" : "did you mean \"" + nearest + "\"?");
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(word.size() / 2, 2) + 1;
  for (const std::string& other : known) {
    const bool begun = word.size() > 1 && other.starts_with(word);
    const std::size_t changes = begun ? 1 : distance(word, other);
    if (changes >= least) continue;
    least = changes;
    nearest = other;
  }
  return nearest;
}

}  // namespace lowtide::cli
