// info.h - what a file is according to its header and size, and whether its contents agree.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lowtide {

// A file is read as an array (lowtide/array.h) or as tokens (lowtide/tokens.h). Only info() reports
// sparse matrices.
enum class FileKind { array, tokens, sparse };
// The enumerator's name.
[[nodiscard]] const char* file_kind_word(FileKind kind) noexcept;

// What the caller knows about a file.
struct InfoOptions {
  // Default: determined by these rules, in this order.
  // - A format that only tokens have (nanogpt, llmc, megatron, ...) means tokens.
  // - A format that only arrays have, a shape, an offset, an order or a key means an array. With an
  //   index.json, a key names a column of tokens.
  // - The prefix of a Megatron pair or an index.json, alone or in a folder, means tokens. So does
  //   any other folder, unless it is a zarr array or group, or its .npy files have NumPy's magic
  //   and are not one axis of integers.
  // - The header or the name of an array format means an array, even if it has one axis of integers
  //   and could be tokens.
  // - The magic of Megatron or llm.c, or the table of MDS or LitData, means tokens.
  // - A file without a header is tokens if its name ends in .bin or .npy (OLMo) and its dtype, if
  //   given, is an integer. Otherwise it is an array, which needs a dtype.
  std::optional<FileKind> kind = std::nullopt;

  // These are as in OpenOptions and TokensOptions.
  std::optional<std::string> dtype = std::nullopt;
  std::optional<std::vector<std::uint64_t>> shape = std::nullopt;
  std::optional<std::uint64_t> offset_bytes = std::nullopt;
  std::optional<bool> fortran_order = std::nullopt;
  std::optional<std::string> format = std::nullopt;
  std::optional<std::string> key = std::nullopt;
};

// One array of a file that may contain several.
struct ArrayInfo {
  std::string key;
  std::string dtype;                 // as in Info
  std::vector<std::uint64_t> shape;  // likewise
  bool fortran_order = false;
  std::uint64_t bytes = 0;  // of its elements
  std::string fault;        // why Lowtide cannot read it; then only `key` is set as well
};

// One file of an array or a stream.
struct FileInfo {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> cached_bytes;  // in the page cache; nullopt: unknown
};

// What info() found.
struct Info {
  std::string path;  // as given; with several, the first
  FileKind kind = FileKind::array;
  std::string format;
  // "float32", ">i2", "bfloat16", or NumPy's descr. Empty, like the shape, if there are several
  // arrays and no key was given.
  std::string dtype;
  // For tokens, their number. For a sparse matrix, only the number of rows: the files that are read
  // here do not record the number of columns.
  std::vector<std::uint64_t> shape;
  bool fortran_order = false;                 // of an array
  std::optional<std::uint64_t> documents;     // if the format records them
  std::uint64_t values = 0;                   // stored in a sparse matrix
  std::uint64_t bytes = 0;                    // of all files
  std::uint64_t shards = 0;                   // files with data
  std::optional<std::uint64_t> cached_bytes;  // of all files; nullopt: unknown for at least one
  std::string cached_unknown;                 // why cached_bytes is unknown
  std::vector<FileInfo> files;                // data first, then indexes
  // All arrays of the first file or of a zarr group, if they have names: safetensors, npz, zarr.
  std::vector<ArrayInfo> arrays;
};

// Whether this describes several arrays, none of which was selected by a key.
[[nodiscard]] inline bool has_several_arrays(const Info& found) {
  return found.arrays.size() > 1 && found.dtype.empty();
}

// Describes the files that a path stands for; Array::open and Tokens::open document which these
// are. Reads only headers, and a Megatron index once. Throws IoError, FormatError, and
// std::invalid_argument for a wrong option. Any thread.
[[nodiscard]] Info info(const std::string& path, const InfoOptions& options = {});
// The same for several files that form one array or one stream.
[[nodiscard]] Info info(std::span<const std::string> paths, const InfoOptions& options = {});

struct CheckOptions {
  InfoOptions file = {};
  // Tokens: each must be at least 0 and below this.
  std::optional<std::uint64_t> vocab = std::nullopt;
  // Tokens: every document of the index must end with this token. Without an index, the last token
  // of each file must be this one (llm.c: the first).
  std::optional<std::uint64_t> eot = std::nullopt;
  // Arrays of floating-point numbers: counts NaN and infinities.
  bool count_nan = false;
  std::uint64_t memory_bytes = 64 << 20;  // the most that check holds, whatever the file size
  // Called after each slice on the thread that called check. An exception from it ends the check.
  std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)> progress = {};
};

// What check() found in files without a fault.
struct CheckResult {
  Info info;
  std::uint64_t read_bytes = 0;
  double seconds = 0;
  // Elements, if they were counted; for complex numbers, parts of elements.
  std::optional<std::uint64_t> nan, infinite;
  std::optional<std::uint64_t> highest_token;  // of tokens
  std::vector<std::string> notes;              // unusual, but not faults
};

// Reads everything that can be wrong, in file order, and leaves the page cache as it was. It checks
// that sizes agree with headers, that indexes never decrease and stay inside the data, that every
// byte can be read, that booleans are 0 or 1, and that values are as the options require. Without a
// key, all arrays of a file that contains several are checked; one that cannot be read is a note.
// Throws at the first fault: FormatError, which names the path, the byte, what was expected and
// what was found, or IoError for a byte that cannot be read. Any thread.
[[nodiscard]] CheckResult check(const std::string& path, const CheckOptions& options = {});
[[nodiscard]] CheckResult check(std::span<const std::string> paths,
                                const CheckOptions& options = {});

}  // namespace lowtide
