// error.h - Lowtide's own exceptions. A wrong argument is a std::invalid_argument and a wrong index
// a std::out_of_range; everything else that Lowtide throws is one of these.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace lowtide {

// The operating system refused an operation or failed to carry it out, mostly on a file. `what()`
// reads "<op> <path> at byte <offset>: <text of err>", followed by a hint if there is one.
class IoError : public std::runtime_error {
 public:
  IoError(int err, std::string op, std::string path,
          std::optional<std::uint64_t> offset_bytes = std::nullopt, const std::string& hint = "");

  int err;           // errno of the failed operation, never 0
  std::string op;    // the operation: "open", "pread", "statx", ...
  std::string path;  // empty if no file was involved
  std::optional<std::uint64_t> offset_bytes;
  // `what()` without the path and without the word "open", for callers that show the path
  // separately, as Python's OSError does: "No such file or directory", "pread at byte 4096:
  // Input/output error".
  std::string reason;
};

// The operating system has no more memory for this process. `what()` names the amount that was
// requested and its purpose.
class NoMemory : public std::bad_alloc {
 public:
  NoMemory(std::uint64_t size_bytes, const std::string& what_for);
  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // unlike a string, copied without throwing
};

// The bytes of a file contradict its header, its index or the caller's description of it. `what()`
// names the path, the offset if it is known, what was expected and what was found.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lowtide
