// error.h - the errors that are ours. A bad argument is std::invalid_argument, a bad index
// std::out_of_range; everything else that Lowtide throws is one of these.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace lowtide {

// The operating system refused or failed an operation, mostly on a file. `what()` reads
// "<op> <path> at byte <offset>: <text of err>" and, where given, a hint what to do next.
class IoError : public std::runtime_error {
 public:
  IoError(int err, std::string op, std::string path,
          std::optional<std::uint64_t> offset_bytes = std::nullopt, const std::string& hint = "");

  int err;           // errno of the failed operation, never 0
  std::string op;    // the operation: "open", "pread", "statx", ...
  std::string path;  // may be empty where no file was involved
  std::optional<std::uint64_t> offset_bytes;
  // `what()` for whoever names the path beside it, as Python's OSError does: without the path, and
  // without the word "open". "No such file or directory", "pread at byte 4096: Input/output error".
  std::string reason;
};

// The operating system has no more memory for us. `what()` says how much was asked for, and what
// for.
class NoMemory : public std::bad_alloc {
 public:
  NoMemory(std::uint64_t size_bytes, const std::string& what_for);
  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // unlike a string, copied without throwing
};

// The bytes of a file break what its header, its index or the caller promised. `what()` names
// the path, the offset where known, what was expected and what was found.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lowtide
