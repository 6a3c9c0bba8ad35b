// build.h - what this build of Lowtide is, what was compiled in, and what is installed beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lowtide {

struct Build {
  std::string version;      // "0.1.0", of the library that is linked
  std::string compiler;     // "GCC 12.2.0"
  std::string target;       // "x86_64, glibc 2.36": what it was compiled for
  bool io_uring = false;    // compiled in; examine() knows whether it works here
  bool http = false;        // compiled in
  std::string why_no_http;  // why objects cannot be read here; empty: they can
  // Code compiled for more than the baseline: "avx2", "avx512".
  std::vector<std::string> vector_paths;
  std::optional<std::string> vector_used;  // the best that this processor runs; else the baseline
  std::optional<std::string> command;      // the path of the command `lowtide`, if it is installed
  std::optional<std::string> guard;        // the path of the library that `lowtide guard` preloads
};

// Looks for the command in `folder` (default: the folder of this executable), and for the library
// of guard in ../lib/lowtide beside that folder. Any thread.
[[nodiscard]] Build build(const std::optional<std::string>& folder = std::nullopt);

// The words of all formats: first those of arrays, then those of tokens.
[[nodiscard]] std::vector<std::string> format_words();
// The words of the formats that Lowtide can write.
[[nodiscard]] std::vector<std::string> output_format_words();

}  // namespace lowtide
