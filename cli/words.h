// words.h - the words behind a verb, looked at before CLI11 is given them, so that what is wrong
// with them is said in sentences of ours.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lowtide::cli {

// `words` follow the name of the verb; a wrapped program is no longer among them. Returns them as
// CLI11 takes them right: options first, and files behind "--", since it would take a file that is
// named as a verb for the verb. Throws std::invalid_argument where CLI11 would not take them: an
// option that is unknown, lacks its value, has one too many, is missing, stands twice or beside one
// that it excludes; files that are missing or too many.
[[nodiscard]] std::vector<std::string> checked_words(const CLI::App& verb,
                                                     const std::vector<std::string>& words);

}  // namespace lowtide::cli
