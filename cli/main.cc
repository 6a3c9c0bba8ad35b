// The command `lowtide`: finds the verb, parses its options, runs it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "failure.h"
#include "help.h"
#include "options.h"
#include "program.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

class Formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_text(*app);
  }
};

// Takes the program that a verb wraps off `words`, the verb first; elsewhere "--" only ends the
// options.
Call split_program(const CLI::App& app, std::vector<std::string>* words) {
  Call call;
  const Verb* const verb = words->empty() ? nullptr : find_verb(words->front());
  if (verb == nullptr || !verb->wraps_program) return call;
  const std::vector<std::string> behind(words->begin() + 1, words->end());
  const std::size_t at = program_at(*app.get_subcommand(verb->name), behind);
  const bool marked = at < behind.size() && behind[at] == "--";
  const auto from = behind.begin() + static_cast<std::ptrdiff_t>(at) + (marked ? 1 : 0);
  call.command.assign(from, behind.end());
  words->resize(1 + at);
  return call;
}

// CLI11 takes "[a,b]" apart as a list. To us it is a file, and "./[a,b]" is the same one.
void keep_whole(std::vector<std::string>* words) {
  for (std::string& word : *words) {
    if (word.starts_with('[') && word.ends_with(']')) word.insert(0, "./");
  }
}

int refuse_verb(const std::string& word) {
  const std::string nearest = nearest_verb(word);
  tell("",
       "no verb \"" + word + "\"; " +
           (nearest.empty() ? "lowtide --help lists them" : "did you mean \"" + nearest + "\"?"));
  return kWrongUsage;
}

int parse_and_run(std::vector<std::string> words) {
  CLI::App app("Arrays and token files bigger than memory: what they are, and where memory went",
               "lowtide");
  app.formatter(std::make_shared<Formatter>());
  app.set_help_flag("-h,--help", "What it does and takes");
  app.set_version_flag("--version", "lowtide " LOWTIDE_VERSION, "Which version this is");
  bool man = false;
  app.add_flag("--man", man, "Print the manual page");
  std::map<const CLI::App*, Run> runs;
  for (const Verb& verb : verbs()) {
    CLI::App* const sub = app.add_subcommand(verb.name, verb.summary);
    runs[sub] = verb.add(*sub);
  }
  if (words.empty()) words = {"--help"};
  const std::string name = words.front().starts_with('-') ? "" : words.front();
  if (!name.empty() && find_verb(name) == nullptr) return refuse_verb(name);
  const Call call = split_program(app, &words);
  keep_whole(&words);
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return kDone;
  } catch (const CLI::ParseError& error) {
    tell(name, std::string(error.what()) + "; lowtide " + (name.empty() ? "" : name + " ") +
                   "--help tells what it takes");
    return kWrongUsage;
  }
  if (man) {
    print(man_page(app));
    return kDone;
  }
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) return refuse_verb("");
  try {
    return runs.at(parsed.front())(call);
  } catch (...) {
    return tell_failure(name);
  }
}

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

}  // namespace
}  // namespace lowtide::cli

int main(int count, char** words) {
  return lowtide::cli::run(count, words);
}
