// files.h - the options that describe the contents of a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/command/json.h"
#include "lowtide/info.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

struct FileWords {
  std::vector<std::string> files;
  std::string dtype, shape, format, order;
  std::string offset;
  std::string key;
  bool tokens = false;
  bool json = false;
};

// FILE... and --dtype, --shape, --offset, --order, --key, --format, --tokens, --json.
[[nodiscard]] std::shared_ptr<FileWords> add_file_words(CLI::App& app, bool several);
// --dtype, --shape, --offset, --order, --key, --tokens, and the format under the name
// `format_option`.
void add_layout_words(CLI::App& app, FileWords* words, const char* format_option);
// Throws a std::invalid_argument that names the option.
[[nodiscard]] InfoOptions info_options(const FileWords& words);

// Accepts decimal digits only; CLI11 would read -1 as the largest number. Throws
// std::invalid_argument.
[[nodiscard]] std::uint64_t parse_count(std::string_view text, const std::string& option);

// Like parse_bytes, but the error message names the option.
[[nodiscard]] std::uint64_t parse_size(std::string_view text, const std::string& option);
// Any finite number, such as "0.5". Throws std::invalid_argument.
[[nodiscard]] double parse_seconds(std::string_view text, const std::string& option);

// Writes the object that `lowtide info --json` prints for a file.
void write_info(JsonWriter* json, const Info& found);

// "(1000, 162)"; for tokens "1,000,000"; for several arrays "3 arrays".
[[nodiscard]] std::string shape_text(const Info& found);
// "(1000, 162)".
[[nodiscard]] std::string shape_text(const std::vector<std::uint64_t>& shape);

}  // namespace lowtide::cli
