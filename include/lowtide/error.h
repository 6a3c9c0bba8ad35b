// error.h - the two errors that are ours. A bad argument is std::invalid_argument, a bad
// index std::out_of_range; everything else that Lowtide throws is one of these.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace lowtide {

// The operating system refused or failed an operation on a file. `what()` reads
// "<op> <path> at byte <offset>: <text of err>" and, where given, a hint what to do next.
class IoError : public std::runtime_error {
 public:
  IoError(int err, std::string op, std::string path,
          std::optional<std::uint64_t> offset_bytes = std::nullopt, const std::string& hint = "");

  int err;           // errno of the failed operation, never 0
  std::string op;    // the operation: "open", "pread", "statx", ...
  std::string path;  // may be empty where no file was involved
  std::optional<std::uint64_t> offset_bytes;
};

// The bytes of a file break what its header, its index or the caller promised. `what()` names
// the path, the offset where known, what was expected and what was found.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lowtide
