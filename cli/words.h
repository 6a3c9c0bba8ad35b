// words.h - checks the words after a verb before CLI11 sees them, so that mistakes are reported in
// our own sentences.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

// `words` follow the name of the verb, without a wrapped program. Returns them in an order that
// CLI11 parses correctly: options first and files after "--", because CLI11 would take a file named
// like a verb for the verb. Throws std::invalid_argument where CLI11 would refuse them: an option
// that is unknown, lacks its value, has an unwanted value, is missing, is repeated, or conflicts
// with another; and missing or surplus files.
[[nodiscard]] std::vector<std::string> checked_words(const CLI::App& verb,
                                                     const std::vector<std::string>& words);

}  // namespace lowtide::cli
