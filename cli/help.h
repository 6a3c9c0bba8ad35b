// help.h - the text of --help and of the man page, generated from the option tree.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace lowtide::cli {

// `app`: the command, or one of its verbs.
[[nodiscard]] std::string help_text(const CLI::App& app);
// lowtide.1, in roff; `root` is the command with all its verbs.
[[nodiscard]] std::string man_page(const CLI::App& root);

}  // namespace lowtide::cli
