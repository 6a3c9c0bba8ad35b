// program.h - where a wrapped program begins on the command line, as for time, nice and strace.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

// The index in `words` (those behind the verb) of the "--" or of the first word that is neither an
// option of `verb` nor the value of one: from there on all words are the program's, its options
// too. words.size(): no program. A verb that takes a file of its own keeps a first word that names
// a recording (below); only "--" begins a program then.
[[nodiscard]] std::size_t program_at(const CLI::App& verb, const std::vector<std::string>& words);

// By its suffix: .trace, .dat or .json. A program that is called so is run behind "--".
[[nodiscard]] bool names_recording(const std::string& word);

}  // namespace lowtide::cli
