#include "words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <stdexcept>

#include "options.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

using Words = std::vector<std::string>;

std::string called(const CLI::App& app) {
  return app.get_parent() == nullptr ? "lowtide" : "lowtide " + app.get_name();
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// "-" alone is a file name to many programs; the caller handles "--".
bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && word != "--";
}

[[noreturn]] void refuse_option(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;  // long names only: any single letter is close to any other
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& long_name : option->get_lnames()) known.push_back(long_name);
  }
  const std::string nearest =
      name.starts_with("--") ? nearest_word(name.substr(2), known) : std::string();
  throw std::invalid_argument("no option " + name + "; " +
                              (nearest.empty() ? called(app) + " --help lists all options"
                                               : "did you mean --" + nearest + "?"));
}

// One option as written: "--memory 1GiB", "--memory=1GiB", "-o x" or "-ox".
struct Given {
  const CLI::Option* option = nullptr;
  std::string name;
  std::size_t words = 1;
};

// The option at words[at], with its value.
Given option_at(const CLI::App& app, const Words& words, std::size_t at) {
  const std::string& word = words[at];
  const bool is_long = word.starts_with("--");
  const std::size_t name_end = is_long ? std::min(word.find('='), word.size()) : 2;
  Given given;
  given.name = word.substr(0, name_end);
  given.option = app.get_option_no_throw(given.name);
  if (given.option == nullptr) refuse_option(app, given.name);
  const std::string rest = word.substr(name_end);
  if (!takes_value(*given.option)) {
    if (!rest.empty()) {
      throw std::invalid_argument(given.name + " takes no value, but found \"" + word + "\"");
    }
    return given;
  }
  const bool inside = is_long ? rest.size() > 1 : !rest.empty();
  if (inside) return given;
  if (!rest.empty() || at + 1 == words.size()) {
    throw std::invalid_argument(given.name + " needs a value: " + given.name + " " +
                                given.option->get_type_name() + "; " + called(app) +
                                " --help explains it");
  }
  given.words = 2;
  return given;
}

// The verb's positional arguments, as its help names them.
std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  std::vector<const CLI::Option*> found;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional()) found.push_back(option);
  }
  return found;
}

void check_files(const CLI::App& app, const Words& files) {
  const std::vector<const CLI::Option*> wanted = positionals_of(app);
  if (wanted.empty()) {
    if (files.empty()) return;
    throw std::invalid_argument(called(app) + " takes no file, but found \"" + files.front() +
                                "\"");
  }
  if (files.size() < wanted.size() && wanted[files.size()]->get_required()) {
    throw std::invalid_argument("no " + wanted[files.size()]->get_name(true) + " was given: " +
                                usage_of(app) + "; " + called(app) + " --help explains it");
  }
  if (wanted.back()->get_items_expected_max() > 1 || files.size() <= wanted.size()) return;
  const std::string expected =
      wanted.size() == 1 ? "one " + wanted.front()->get_name(true)
                         : wanted[0]->get_name(true) + " and " + wanted[1]->get_name(true);
  throw std::invalid_argument("expected " + expected + ", but found a " +
                              (wanted.size() == 1 ? "second" : "third") + ": \"" +
                              files[wanted.size()] + "\"");
}

void check_together(const CLI::App& app, const std::map<const CLI::Option*, std::size_t>& given) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional()) continue;
    const auto found = given.find(option);
    if (found == given.end()) {
      if (!option->get_required()) continue;
      const Verb* const verb = find_verb(app.get_name());
      const std::string example = verb == nullptr ? "" : verb->example;
      throw std::invalid_argument(option->get_name() + " is missing; for example: " +
                                  example.substr(0, example.find('\n')));
    }
    const bool once = takes_value(*option) && option->get_items_expected_max() == 1 &&
                      option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
    if (once && found->second > 1) {
      throw std::invalid_argument(option->get_name() + " was given " +
                                  (found->second == 2 ? "twice" : "several times") +
                                  ": give it once");
    }
    for (const CLI::Option* const other : option->get_excludes()) {
      if (!given.contains(other)) continue;
      throw std::invalid_argument(option->get_name() + " and " + other->get_name() +
                                  " cannot be combined: give only one of them");
    }
  }
}

}  // namespace

Words checked_words(const CLI::App& verb, const Words& words) {
  std::map<const CLI::Option*, std::size_t> given;
  Words options, files;
  for (auto at = words.begin(); at != words.end();) {
    if (*at == "--") {
      files.insert(files.end(), at + 1, words.end());
      break;
    }
    if (!is_option(*at)) {
      files.push_back(*at++);
      continue;
    }
    const Given option = option_at(verb, words, static_cast<std::size_t>(at - words.begin()));
    if (option.option == verb.get_help_ptr()) return {*at};  // help wins over any other mistake
    ++given[option.option];
    const auto end = at + static_cast<std::ptrdiff_t>(option.words);
    options.insert(options.end(), at, end);
    at = end;
  }
  check_files(verb, files);
  check_together(verb, given);
  if (!files.empty()) options.emplace_back("--");
  options.insert(options.end(), files.begin(), files.end());
  return options;
}

}  // namespace lowtide::cli
