#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "options.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

std::string option_names(const CLI::App& app) {
  std::string names;
  for (const OptionWords& option : options_of(app)) {
    if (option.positional) continue;
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

constexpr const char* kShells = "bash zsh fish";

// The options that take a value; without `files`, those whose value is a file are left out, so
// only options whose value has no completions remain.
std::string value_names(const CLI::App& app, bool files) {
  std::string names;
  for (const OptionWords& option : options_of(app)) {
    if (option.value.empty() || (option.value == "FILE" && !files)) continue;
    for (const std::string& name : option.names) names += (names.empty() ? "" : "|") + name;
  }
  return names.empty() ? "-" : names;  // no verb has an option "-"
}

std::string verb_names(const CLI::App& root) {
  std::string names;
  for (const CLI::App* const verb : subcommands_of(root)) {
    names += (names.empty() ? "" : " ") + verb->get_name();
  }
  return names;
}

// The words that may follow a verb that takes no file; empty: it takes files.
std::string first_words(const CLI::App& app) {
  if (app.get_name() == "completion") return kShells;
  return app.get_name() == "help" ? verb_names(*app.get_parent()) : "";
}

bool wraps_program(const CLI::App& app) {
  const Verb* const verb = find_verb(app.get_name());
  return verb != nullptr && verb->wraps_program;
}

bool takes_files(const CLI::App& app) {
  return std::ranges::any_of(options_of(app), &OptionWords::positional);
}

std::string bash_script(const CLI::App& root) {
  std::string cases;
  for (const CLI::App* const app : subcommands_of(root)) {
    cases += "    " + app->get_name() + ")\n      options=\"" + option_names(*app) +
             "\"\n      values=\"" + value_names(*app, false) + "\"\n";
    if (wraps_program(*app)) {
      cases += "      wraps=1 takes=\"" + value_names(*app, true) + "\"\n";
    }
    if (wraps_program(*app) && takes_files(*app)) cases += "      files=1\n";
    if (!first_words(*app).empty()) cases += "      words=\"" + first_words(*app) + "\"\n";
    cases += "      ;;\n";
  }
  return R"(# bash completion of lowtide
_lowtide() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local options values takes words wraps files program i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ")" +
         verb_names(root) + " " + option_names(root) + R"(" -- "$current"))
    return
  fi
  case ${COMP_WORDS[1]} in
)" + cases +
         R"(  esac
  for ((i = 2; i < COMP_CWORD && ${#wraps}; i++)); do
    case ${COMP_WORDS[i]} in
      --) program=$((i + 1)); break ;;
      -*) case "|$takes|" in *"|${COMP_WORDS[i]}|"*) i=$((i + 1)) ;; esac ;;
      *) [ -n "$files" ] && [[ ${COMP_WORDS[i]} =~ \.(trace|dat|json)$ ]] || program=$i ;;
    esac
    [ -z "$program" ] || break
  done
  if [ -n "$wraps" ] && [ "$i" -eq "$COMP_CWORD" ] && [[ $current != -* ]]; then
    program=$COMP_CWORD
  fi
  if [ -n "$program" ]; then
    [ "$program" -ne "$COMP_CWORD" ] || COMPREPLY=($(compgen -c -- "$current"))
    [ "$program" -ne "$COMP_CWORD" ] || [ -z "$files" ] || COMPREPLY+=($(compgen -f -- "$current"))
    compopt -o default 2>/dev/null
    return
  fi
  case $before in
    -*) case "|$values|" in *"|$before|"*) return ;; esac ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    compopt -o default 2>/dev/null
  fi
}
complete -F _lowtide lowtide
)";
}

// Escapes zsh's special characters; the result goes between single quotes.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

// After "--", a wrapped program is completed as if it stood alone.
constexpr const char* kZshProgram = R"(      local mark=${words[(i)--]}
      if (( mark < CURRENT )); then
        shift $mark words
        (( CURRENT -= mark ))
        _normal
        return
      fi
)";

std::string zsh_arguments(const CLI::App& app) {
  std::string text;
  if (wraps_program(app) && !takes_files(app)) {
    text += " \\\n        '(-)1:program:_command_names -e' \\\n        '*::argument:_normal'";
  }
  if (takes_files(app)) {  // once: zsh refuses a second rest of the words
    const std::string words = first_words(app);
    text += " \\\n        '" + (words.empty() ? "*:file:_files" : "1:word:(" + words + ")") + "'";
  }
  for (const OptionWords& option : options_of(app)) {
    if (option.positional) continue;
    for (const std::string& name : option.names) {
      text += " \\\n        '" + name + "[" + zsh_text(option.description) + "]";
      if (!option.value.empty()) {
        text += ":" + zsh_text(option.value) + ":" + (option.value == "FILE" ? "_files" : " ");
      }
      text += "'";
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& root) {
  std::string described, cases;
  for (const CLI::App* const app : subcommands_of(root)) {
    described += "    '" + app->get_name() + ":" + zsh_text(app->get_description()) + "'\n";
    cases += "    " + app->get_name() + ")\n" + (wraps_program(*app) ? kZshProgram : "") +
             "      _arguments" + zsh_arguments(*app) + "\n      ;;\n";
  }
  return "#compdef lowtide\n_lowtide() {\n  local -a verbs\n  verbs=(\n" + described +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n"
         "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n" +
         cases + "  esac\n}\ncompdef _lowtide lowtide\n";
}

std::string fish_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// "-s o -l output -r -F -d 'Write ...'"
std::string fish_option(const OptionWords& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    text += (is_long ? " -l " : " -s ") + name.substr(is_long ? 2 : 1);
  }
  if (!option.value.empty()) text += option.value == "FILE" ? " -r -F" : " -x";
  return text + " -d " + fish_text(option.description) + "\n";
}

// True for the words after the verb, up to the program that it wraps.
std::string fish_condition(const CLI::App& app) {
  std::string names = value_names(app, true);
  std::ranges::replace(names, '|', ' ');
  const std::string name = app.get_name();
  return wraps_program(app) ? "__lowtide_options " + name + " " + names : "__lowtide_verb " + name;
}

std::string fish_script(const CLI::App& root) {
  constexpr const char* kFirst = "complete -c lowtide -n __lowtide_no_verb";
  std::string out = R"(# fish completion of lowtide
function __lowtide_no_verb
    test (count (commandline -opc)) -eq 1
end
function __lowtide_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = $argv[1]
end
# True while the cursor is still in the verb's own words; $argv[2..] are its options with a value.
function __lowtide_options
    __lowtide_verb $argv[1]; or return 1
    set -l words (commandline -opc)
    set -l i 3
    while test $i -le (count $words)
        switch "$words[$i]"
            case --
                return 1
            case '-*'
                contains -- $words[$i] $argv[2..]; and set i (math $i + 1)
            case '*.trace' '*.dat' '*.json'
            case '*'
                return 1
        end
        set i (math $i + 1)
    end
end
complete -c lowtide -f
)";
  for (const OptionWords& option : options_of(root)) out += kFirst + fish_option(option);
  for (const CLI::App* const app : subcommands_of(root)) {
    const std::string name = app->get_name();
    out += kFirst + (" -a " + name) + " -d " + fish_text(app->get_description()) + "\n";
    const std::string behind = "complete -c lowtide -n '" + fish_condition(*app) + "'";
    if (takes_files(*app)) {
      const std::string words = first_words(*app);
      out += behind + (words.empty() ? " -F" : " -a '" + words + "'") + "\n";
    }
    for (const OptionWords& option : options_of(*app)) {
      if (!option.positional) out += behind + fish_option(option);
    }
    if (wraps_program(*app)) {  // "-" ends the options of the fish function; ours follow
      std::string names = value_names(*app, true);
      std::ranges::replace(names, '|', ' ');
      out += "complete -c lowtide -n '__lowtide_verb " + name +
             "' -a '(__fish_complete_subcommand --fcs-skip=2 - " + names + ")'\n";
    }
  }
  return out;
}

}  // namespace

Action add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")->required()->type_name("");
  const CLI::App* const root = app.get_parent();
  return [shell, root](const Call&) {
    if (*shell == "bash") {
      print(bash_script(*root));
    } else if (*shell == "zsh") {
      print(zsh_script(*root));
    } else if (*shell == "fish") {
      print(fish_script(*root));
    } else {
      throw std::invalid_argument("expected bash, zsh or fish, found \"" + *shell + "\"");
    }
    return kDone;
  };
}

}  // namespace lowtide::cli
