// The token files of datatrove and nanotron: plain tokens (X.ds), and beside them the end of every
// document in tokens (X.ds.index, u64 each, not decreasing, the last one the number of all tokens).
// Other files beside them (X.ds.metadata, X.ds.loss) are neither read nor written.
//
// Recognises the names. Tokens have 2 or 4 bytes, as the size of the data and the last end say.
// Reads and checks the whole index, in slices of 256 KiB; the data is not read. Without an index,
// as datatrove writes on request, these are tokens without documents. Refuses ends that decrease,
// and a size of the data that does not go with the last end.
#include <array>
#include <vector>

#include "lowtide/error.h"
#include "token_format/token_output.h"

namespace lowtide::datatrove {
namespace {

constexpr std::string_view kDataSuffix = ".ds";
constexpr std::string_view kIndexSuffix = ".ds.index";
constexpr std::uint64_t kEndBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kSliceEnds = 32 * 1024;

bool is_index(const std::string& path) {
  return path.ends_with(kIndexSuffix);
}

std::string other_name(const std::string& path) {
  if (is_index(path)) {
    return path.substr(0, path.size() - kIndexSuffix.size()) + std::string(kDataSuffix);
  }
  return path + std::string(kIndexSuffix.substr(kDataSuffix.size()));
}

// Checks every end, and returns the last one.
std::uint64_t last_end(const TokenFile& index) {
  if (index.file_bytes % kEndBytes != 0) {
    throw FormatError(index.path + ": expected a multiple of 8 bytes, found " +
                      std::to_string(index.file_bytes));
  }
  const std::uint64_t documents = index.file_bytes / kEndBytes;
  std::vector<std::byte> slice(std::min(documents, kSliceEnds) * kEndBytes);
  std::uint64_t before = 0;
  for (std::uint64_t first = 0; first < documents; first += kSliceEnds) {
    const std::uint64_t count = std::min(kSliceEnds, documents - first);
    index.read(first * kEndBytes, std::span(slice).first(count * kEndBytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto end = load_little<std::uint64_t>(&slice[i * kEndBytes]);
      if (end < before) {
        throw FormatError(index.path + ": document " + std::to_string(first + i) +
                          ": expected an end at token " + std::to_string(before) +
                          " or later, found " + std::to_string(end));
      }
      before = end;
    }
  }
  return before;
}

DType type_of(const TokenFile& data, std::uint64_t tokens, const TokenGiven& given) {
  if (tokens == 0 && data.file_bytes == 0) return given.dtype.value_or(DType::parse("<u2"));
  for (const char* const name : {"<u2", "<u4"}) {
    const DType dtype = DType::parse(name);
    if (tokens > 0 && data.file_bytes / dtype.itemsize_bytes == tokens &&
        data.file_bytes % dtype.itemsize_bytes == 0) {
      return dtype;
    }
  }
  throw FormatError(data.path + ": expected 2 or 4 bytes for each of the " +
                    std::to_string(tokens) + " tokens of the index, found " +
                    std::to_string(data.file_bytes) + " bytes");
}

TokenLayout open_without_index(const TokenSource& source) {
  const TokenFile& file = source.file;
  const DType dtype = source.given.dtype.value_or(DType::parse("<u2"));
  if (file.file_bytes % dtype.itemsize_bytes != 0) {
    throw FormatError(file.path + ": expected a multiple of " +
                      std::to_string(dtype.itemsize_bytes) + " bytes, found " +
                      std::to_string(file.file_bytes));
  }
  return one_extent(file.path, dtype, 0, file.file_bytes / dtype.itemsize_bytes);
}

bool matches(const TokenSource& source) {
  return source.file.path.ends_with(kDataSuffix) || is_index(source.file.path);
}

TokenLayout open(const TokenSource& source) {
  const TokenFile& named = source.file;
  const std::optional<TokenFile> other = source.beside(other_name(named.path));
  if (!other && !is_index(named.path)) return open_without_index(source);
  if (!other) {
    throw FormatError(named.path + ": expected the data in " + other_name(named.path) +
                      ", found no file");
  }
  const TokenFile& data = is_index(named.path) ? *other : named;
  const TokenFile& index = is_index(named.path) ? named : *other;
  const std::uint64_t tokens = last_end(index);
  const DType dtype = type_of(data, tokens, source.given);
  check_given_dtype(source.given, dtype, index.path);
  TokenLayout layout = one_extent(data.path, dtype, 0, tokens);
  layout.documents = {.path = index.path,
                      .by = DocumentsBy::token_ends,
                      .sequences = index.file_bytes / kEndBytes,
                      .documents = index.file_bytes / kEndBytes};
  return layout;
}

constexpr std::array kTypes{TokenType::u16, TokenType::u32};

void store_end(const DocumentPlace& document, std::byte* entry) {
  store_little(document.first_token + document.tokens, entry);
}

std::uint64_t load_length(const std::byte* entry, std::uint64_t first_token) {
  return load_little<std::uint64_t>(entry) - first_token;
}

constexpr std::array kColumns{IndexColumn{.entry_bytes = kEndBytes, .store = store_end}};
constexpr IndexOutput kIndex{.columns = kColumns, .load_tokens = load_length};
constexpr TokenOutput kOutput{.types = kTypes, .index = &kIndex};

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = "datatrove",
                                    .suffix = kDataSuffix,
                                    .index_suffix = kIndexSuffix,
                                    .has_header = false,
                                    .matches = matches,
                                    .open = open,
                                    .output = &kOutput};

}  // namespace lowtide::datatrove
