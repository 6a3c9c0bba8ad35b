#include "help.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "options.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

// "  name   description", the descriptions in one column; on a narrow terminal each description
// goes below its name.
std::string listed(const Lines& lines) {
  constexpr std::size_t kIndent = 2;
  constexpr std::size_t kLeastText = 30;
  const std::size_t columns = output().columns;
  std::size_t width = 0;
  for (const auto& line : lines) width = std::max(width, width_of(line.first));
  std::size_t text_at = kIndent + width + 2;
  const bool below = columns != 0 && columns < text_at + kLeastText;
  if (below) text_at = 2 * kIndent;
  std::string out;
  for (const auto& [name, text] : lines) {
    out += std::string(kIndent, ' ') + name;
    out += below ? "\n" + std::string(text_at, ' ')
                 : std::string(text_at - kIndent - width_of(name), ' ');
    out += wrapped(text, columns > text_at ? columns - text_at : 0, text_at) + "\n";
  }
  return out;
}

std::string heading(const std::string& text) {
  return "\n" + paint(text, Tone::bold) + "\n";
}

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (const char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out + "\n";
}

}  // namespace

std::string help_text(const CLI::App& app) {
  const std::size_t columns = output().columns;
  std::string out = wrapped(app.get_description() + ".", columns, 0) + "\n";
  out += heading("Usage") + "  " + wrapped(usage_of(app), columns > 4 ? columns - 4 : 0, 4) + "\n";
  Lines verb_lines, option_lines;
  for (const CLI::App* const verb : subcommands_of(app)) {
    verb_lines.emplace_back(verb->get_name(), verb->get_description());
  }
  for (const OptionWords& option : options_of(app)) {
    option_lines.emplace_back(option.usage(), option.description);
  }
  if (!verb_lines.empty()) out += heading("Verbs") + listed(verb_lines);
  if (!option_lines.empty()) out += heading("Options") + listed(option_lines);
  if (const Verb* const verb = find_verb(app.get_name())) {
    out += heading("Example") + indented(verb->example);
  } else {
    out += "\n" +
           wrapped("Run lowtide help VERB, or lowtide VERB --help, for details and an example.",
                   columns, 0) +
           "\n";
  }
  return out;
}

Action add_help(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  app.add_option("VERB", *name, "The verb to explain; without one, all verbs are listed")
      ->type_name("");
  const CLI::App* const root = app.get_parent();
  return [name, root](const Call&) {
    if (!name->empty() && find_verb(*name) == nullptr) throw std::invalid_argument(no_verb(*name));
    print(help_text(name->empty() ? *root : *root->get_subcommand(*name)));
    return kDone;
  };
}

}  // namespace lowtide::cli
