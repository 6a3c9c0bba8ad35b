#include <CLI/CLI.hpp>
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

// Options whose value is no file complete to nothing.
std::string value_names(const CLI::App& app) {
  std::string names;
  for (const OptionWords& option : options_of(app)) {
    if (option.value.empty() || option.value == "FILE") continue;
    for (const std::string& name : option.names) names += (names.empty() ? "" : "|") + name;
  }
  return names.empty() ? "-" : names;  // "-" is no option of any verb
}

std::string verb_names(const CLI::App& root) {
  std::string names;
  for (const CLI::App* const verb : subcommands_of(root)) {
    names += (names.empty() ? "" : " ") + verb->get_name();
  }
  return names;
}

std::string bash_script(const CLI::App& root) {
  std::string cases;
  for (const CLI::App* const app : subcommands_of(root)) {
    const Verb* const verb = find_verb(app->get_name());
    cases += "    " + app->get_name() + ")\n      options=\"" + option_names(*app) +
             "\"\n      values=\"" + value_names(*app) + "\"\n";
    if (verb != nullptr && verb->wraps_program) cases += "      wraps=1\n";
    if (app->get_name() == "completion") cases += "      words=\"bash zsh\"\n";
    cases += "      ;;\n";
  }
  return R"(# bash completion of lowtide
_lowtide() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local options values words wraps i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ")" +
         verb_names(root) + " " + option_names(root) + R"(" -- "$current"))
    return
  fi
  case ${COMP_WORDS[1]} in
)" + cases +
         R"(  esac
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [ -n "$wraps" ] && [ "${COMP_WORDS[i]}" = -- ]; then
      if [ "$i" -eq $((COMP_CWORD - 1)) ]; then
        COMPREPLY=($(compgen -c -- "$current"))
      else
        compopt -o default 2>/dev/null
      fi
      return
    fi
  done
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

// In single quotes, for zsh: what its own signs would mean is taken from them.
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

// Behind "--" a wrapped program is completed as if it stood alone.
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
  for (const OptionWords& option : options_of(app)) {
    if (option.positional) {
      const bool shells = app.get_name() == "completion";
      text += shells ? " \\\n        '1:shell:(bash zsh)'" : " \\\n        '*:file:_files'";
      continue;
    }
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
    const Verb* const verb = find_verb(app->get_name());
    const bool wraps = verb != nullptr && verb->wraps_program;
    cases += "    " + app->get_name() + ")\n" + (wraps ? kZshProgram : "") + "      _arguments" +
             zsh_arguments(*app) + "\n      ;;\n";
  }
  return "#compdef lowtide\n_lowtide() {\n  local -a verbs\n  verbs=(\n" + described +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n"
         "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n" +
         cases + "  esac\n}\ncompdef _lowtide lowtide\n";
}

}  // namespace

Run add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash or zsh")->required()->type_name("");
  const CLI::App* const root = app.get_parent();
  return [shell, root](const Call&) {
    if (*shell != "bash" && *shell != "zsh") {
      throw std::invalid_argument("expected bash or zsh, found \"" + *shell + "\"");
    }
    print(*shell == "bash" ? bash_script(*root) : zsh_script(*root));
    return kDone;
  };
}

}  // namespace lowtide::cli
