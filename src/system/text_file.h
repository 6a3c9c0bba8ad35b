// text_file.h - reads the small text files in which the kernel describes itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

// Where the system's files are; tests use a folder of their own.
struct SystemRoot {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string sys = "/sys";
};

// The whole file, up to 16 MiB; nullopt if it cannot be read (missing, hidden, forbidden). `err`,
// if given, then receives the errno.
[[nodiscard]] std::optional<std::string> read_text(const std::string& path, int* err = nullptr);

// The pieces between separators. Empty pieces are left out, including the one after a final
// separator.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

// Decimal digits at the start of `text`, after spaces; nullopt if there are none or too many.
[[nodiscard]] std::optional<std::uint64_t> leading_number(std::string_view text);

// The same for a file; nullopt also if it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> number_in(const std::string& path);

// The number after `key` and blanks or a colon, on a line of its own ("MemTotal:  123 kB",
// "inactive_file 4096").
[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key);

}  // namespace lowtide
