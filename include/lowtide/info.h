// info.h - what a file is, as far as its header and its size tell; and whether all of it keeps
// what they promise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lowtide {

// A file is read as an array (lowtide/array.h) or as tokens (lowtide/tokens.h).
enum class FileKind { array, tokens };
[[nodiscard]] const char* file_kind_word(FileKind kind) noexcept;

struct InfoOptions {
  // nullopt: found, in this order. A format word of tokens (nanogpt, llmc, megatron, olmo), a
  // folder and the prefix of a Megatron pair are tokens. A shape, an offset and an order are those
  // of an array. NumPy's magic is an array, also one axis of integers, which tokens could be too.
  // Megatron's and llm.c's magic are tokens. What has no header is tokens if its name ends in .bin
  // or .npy (OLMo) and its dtype, if given, is an integer; else an array, which needs a dtype.
  std::optional<FileKind> kind = std::nullopt;

  std::optional<std::string> dtype = std::nullopt;
  std::optional<std::vector<std::uint64_t>> shape = std::nullopt;
  std::optional<std::uint64_t> offset_bytes = std::nullopt;
  std::optional<bool> fortran_order = std::nullopt;
  std::optional<std::string> format = std::nullopt;
};

struct FileInfo {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> cached_bytes;  // in the page cache; nullopt: unknown
};

struct Info {
  std::string path;  // as given; of several, the first
  FileKind kind = FileKind::array;
  std::string format;
  std::string dtype;                          // "float32", ">i2", or NumPy's descr
  std::vector<std::uint64_t> shape;           // of tokens: their number
  bool fortran_order = false;                 // of an array
  std::optional<std::uint64_t> documents;     // where the format tells
  std::uint64_t bytes = 0;                    // of all files
  std::uint64_t shards = 0;                   // files with data
  std::optional<std::uint64_t> cached_bytes;  // of all files; nullopt: unknown for one
  std::string cached_unknown;                 // why
  std::vector<FileInfo> files;                // data first, then indexes
};

// Reads headers, and a Megatron index once. A path as Array::open and Tokens::open take it. Throws
// IoError, FormatError, and std::invalid_argument for a bad option.
[[nodiscard]] Info info(const std::string& path, const InfoOptions& options = {});
// Several files that are one array or one stream.
[[nodiscard]] Info info(std::span<const std::string> paths, const InfoOptions& options = {});

struct CheckOptions {
  InfoOptions file = {};
  // Tokens: each must be from 0 to below this.
  std::optional<std::uint64_t> vocab = std::nullopt;
  // Tokens: the one that every document ends with, by the index; without an index the last one of
  // the file (llm.c: the first).
  std::optional<std::uint64_t> eot = std::nullopt;
  // Arrays of floating-point numbers: count what is no number.
  bool count_nan = false;
  std::uint64_t memory_bytes = 64 << 20;  // at most held, whatever the file
  // Called after each piece from the thread that calls check; what it throws ends the check.
  std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)> progress = {};
};

struct CheckResult {
  Info info;
  std::uint64_t read_bytes = 0;
  double seconds = 0;
  std::optional<std::uint64_t> nan, infinite;  // elements, where counted; of complex numbers parts
  std::optional<std::uint64_t> highest_token;  // of tokens
  std::vector<std::string> notes;              // what is odd and allowed
};

// Reads all that can be wrong, in the order in which it lies, and leaves the page cache as it was:
// sizes against headers, indexes that go up and stay inside the data, every byte, the values as
// asked for; truth values that are neither 0 nor 1. Throws at the first fault: FormatError that
// names the path, the byte, what was expected and what was found, IoError for a byte that cannot be
// read.
[[nodiscard]] CheckResult check(const std::string& path, const CheckOptions& options = {});
[[nodiscard]] CheckResult check(std::span<const std::string> paths,
                                const CheckOptions& options = {});

}  // namespace lowtide
