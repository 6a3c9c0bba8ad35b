// program.h - where a wrapped program begins on the command line, as for time, nice and strace.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

// The index in `words` (those after the verb) of "--", or of the first word that is neither an
// option of `verb` nor the value of one. From there on, all words belong to the program, including
// its options. words.size(): no program. A verb that takes a file of its own keeps a first word
// that names a recording (below); then only "--" begins a program.
[[nodiscard]] std::size_t program_at(const CLI::App& verb, const std::vector<std::string>& words);

// Decided by the suffix: .trace, .dat or .json. A program with such a name must follow "--".
[[nodiscard]] bool names_recording(const std::string& word);

}  // namespace lowtide::cli
