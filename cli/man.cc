#include <CLI/CLI.hpp>
#include <string>

#include "help.h"
#include "lowtide/version.h"
#include "options.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

// roff interprets a backslash, and a dot or a quote at the start of a line. It prints a plain "-"
// as a typographic hyphen, which a shell does not accept when pasted.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

std::string option_part(const CLI::App& app) {
  std::string out;
  for (const OptionWords& option : options_of(app)) {
    out += ".TP\n.B " + roff(option.usage()) + "\n" + roff(option.description) + ".\n";
  }
  return out;
}

std::string verb_part(const CLI::App& app) {
  std::string out = ".SS \"" + roff(usage_of(app)) + "\"\n" + roff(app.get_description()) + ".\n" +
                    option_part(app);
  if (const Verb* const verb = find_verb(app.get_name())) {
    out += ".PP\nExample:\n.PP\n.nf\n.RS\n" + roff(verb->example) + "\n.RE\n.fi\n";
  }
  return out;
}

}  // namespace

std::string man_page(const CLI::App& root) {
  std::string out =
      std::string(".TH LOWTIDE 1 \"\" \"lowtide ") + version() + "\" \"User Commands\"\n";
  out += ".SH NAME\nlowtide \\- arrays and token files bigger than memory\n";
  out += ".SH SYNOPSIS\n.B " + roff(usage_of(root)) + "\n";
  out +=
      ".SH DESCRIPTION\n" + roff(root.get_description()) + ".\n.SH OPTIONS\n" + option_part(root);
  out += ".SH VERBS\n";
  for (const CLI::App* const verb : subcommands_of(root)) out += verb_part(*verb);
  out +=
      ".SH EXIT STATUS\n.TP\n.B 0\nSuccess.\n.TP\n.B 1\nFailure.\n.TP\n.B 2\nWrong usage, a "
      "missing file, or an invalid size.\n.TP\n.B 130\nStopped by Ctrl\\-C; 143 if stopped by "
      "SIGTERM.\n.PP\nA verb that runs a program returns the program\\(aqs exit status: 128 "
      "+ n if signal n ended it, 127 if it was not found.\n";
  out +=
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set, the output has no colours.\n.TP\n.B LC_ALL, "
      "LC_CTYPE, LANG\nUnless they select UTF\\-8, the output is plain ASCII.\n";
  return out;
}

}  // namespace lowtide::cli
