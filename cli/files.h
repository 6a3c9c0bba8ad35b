// files.h - the options by which a verb is told what is in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/info.h"
#include "lowtide/json.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

struct FileWords {
  std::vector<std::string> files;
  std::string dtype, shape, format, order;
  std::string offset;
  bool tokens = false;
  bool json = false;
};

// FILE... and --dtype, --shape, --offset, --order, --format, --tokens, --json.
[[nodiscard]] std::shared_ptr<FileWords> add_file_words(CLI::App& app, bool several);
// Throws std::invalid_argument that names the option.
[[nodiscard]] InfoOptions info_options(const FileWords& words);

// Decimal digits only: CLI11 would take -1 for the largest number. Throws std::invalid_argument.
[[nodiscard]] std::uint64_t parse_count(std::string_view text, const std::string& option);

// As parse_bytes; a refusal names the option.
[[nodiscard]] std::uint64_t parse_size(std::string_view text, const std::string& option);
// Any finite number, "0.5". Throws std::invalid_argument.
[[nodiscard]] double parse_seconds(std::string_view text, const std::string& option);

// An object of what `lowtide info --json` tells of a file.
void write_info(JsonWriter* json, const Info& found);

// "(1000, 162)"; of tokens "1,000,000".
[[nodiscard]] std::string shape_text(const Info& found);

}  // namespace lowtide::cli
