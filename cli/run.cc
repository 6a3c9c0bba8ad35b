// Finds the verb, parses its options, runs it.
#include "run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "failure.h"
#include "help.h"
#include "lowtide/command/json.h"
#include "lowtide/version.h"
#include "options.h"
#include "program.h"
#include "terminal.h"
#include "verb.h"
#include "words.h"

namespace lowtide::cli {
namespace {

class Formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_text(*app);
  }
};

// Moves the program that a verb wraps out of `words` (everything after the verb). For verbs that
// wrap nothing, "--" merely ends the options.
Call split_program(const CLI::App& app, std::vector<std::string>* words) {
  Call call;
  const Verb* const verb = find_verb(app.get_name());
  if (verb == nullptr || !verb->wraps_program) return call;
  const std::size_t at = program_at(app, *words);
  const bool marked = at < words->size() && (*words)[at] == "--";
  const auto from = words->begin() + static_cast<std::ptrdiff_t>(at) + (marked ? 1 : 0);
  call.command.assign(from, words->end());
  words->resize(at);
  return call;
}

// CLI11 would split "[a,b]" as a list. To us it is a file name, and "./[a,b]" names the same file.
void keep_whole(std::vector<std::string>* words) {
  for (std::string& word : *words) {
    if (word.starts_with('[') && word.ends_with(']')) word.insert(0, "./");
  }
}

int refuse_verb(const std::string& word) {
  tell("", no_verb(word));
  return kWrongUsage;
}

bool wants_json(const CLI::App& verb) {
  const CLI::Option* const json = verb.get_option_no_throw("--json");
  return json != nullptr && json->count() > 0;
}

// A caller who passed --json gets a JSON object even when the verb failed.
void print_error_object(const Failure& failure) {
  JsonWriter json;
  json.begin_object().field("error", failure.message).end_object();
  print(json.text() + "\n");
}

// Throws CLI11's exceptions, and std::invalid_argument.
Call parse(CLI::App& app, const std::string& name, std::vector<std::string> words) {
  Call call;
  if (name.empty()) {
    words = checked_words(app, words);
  } else {
    const CLI::App& verb = *app.get_subcommand(name);
    words.erase(words.begin());
    call = split_program(verb, &words);
    words = checked_words(verb, words);
    words.insert(words.begin(), name);
  }
  keep_whole(&words);
  std::ranges::reverse(words);  // CLI11 wants the last word first
  app.parse(words);
  return call;
}

int parse_and_run(std::vector<std::string> words) {
  CLI::App app(
      "Inspect and rewrite arrays and token files bigger than memory, and see where memory goes",
      "lowtide");
  app.formatter(std::make_shared<Formatter>());
  app.set_help_flag("-h,--help", "Show this help");
  app.set_version_flag("--version", std::string("lowtide ") + version(), "Show the version");
  bool man = false;
  app.add_flag("--man", man, "Print the manual page");
  std::map<const CLI::App*, Action> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* const sub = app.add_subcommand(verb.name, verb.summary);
    actions[sub] = verb.add(*sub);
  }
  if (words.empty()) words = {"--help"};
  const std::string name = words.front().starts_with('-') ? "" : words.front();
  if (!name.empty() && find_verb(name) == nullptr) return refuse_verb(name);
  Call call;
  try {
    call = parse(app, name, std::move(words));
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return kDone;
  } catch (const CLI::ConversionError& error) {  // "Could not convert: --interval = x"
    const std::string text = error.what();
    tell(name, text.substr(std::min(text.find("--"), text.size())) + ": expected a number");
    return kWrongUsage;
  } catch (const std::exception& error) {
    tell(name, error.what());
    return kWrongUsage;
  }
  if (man) {
    print(man_page(app));
    return kDone;
  }
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) return refuse_verb("");
  try {
    return actions.at(parsed.front())(call);
  } catch (...) {
    const Failure failure = failure_now();
    tell(name, failure.message);
    if (wants_json(*parsed.front())) print_error_object(failure);
    return failure.code;
  }
}

}  // namespace

int run(int count, char** words) {
  int code = kFailed;
  try {
    code = parse_and_run({words + std::min(count, 1), words + count});
  } catch (...) {
    code = tell_failure("");
  }
  std::string why;
  if (flush_output(&why)) return code;
  tell("", "cannot write the output: " + why);
  return code == kDone ? kFailed : code;
}

}  // namespace lowtide::cli
