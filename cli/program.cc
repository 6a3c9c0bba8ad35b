#include "program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

namespace lowtide::cli {
namespace {

bool takes_a_file(const CLI::App& verb) {
  return std::ranges::any_of(verb.get_options(),
                             [](const CLI::Option* option) { return option->get_positional(); });
}

// "-o" and "--output" take the next word; "-oFILE" and "--output=FILE" contain their value.
bool takes_next(const CLI::App& verb, const std::string& word) {
  const bool is_long = word.starts_with("--");
  if (!is_long && word.size() > 2) return false;
  const CLI::Option* const option = verb.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

}  // namespace

bool names_recording(const std::string& word) {
  constexpr std::array<std::string_view, 3> kSuffixes{".trace", ".dat", ".json"};
  return std::ranges::any_of(kSuffixes,
                             [&](std::string_view suffix) { return word.ends_with(suffix); });
}

std::size_t program_at(const CLI::App& verb, const std::vector<std::string>& words) {
  bool only_behind_mark = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return i;
    if (word.size() > 1 && word.starts_with('-')) {
      if (takes_next(verb, word)) ++i;
    } else if (!only_behind_mark) {
      if (!takes_a_file(verb) || !names_recording(word)) return i;
      only_behind_mark = true;
    }
  }
  return words.size();
}

}  // namespace lowtide::cli
