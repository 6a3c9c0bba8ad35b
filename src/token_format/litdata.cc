// LitData: a folder of chunks, each with the number of its items, the byte at which each of them
// starts (u32) and the items. An index.json lists the chunks in their order, and has the type.
//
// Reads chunks of a TokensLoader, whose items are tokens and nothing else: one extent per chunk,
// and a document per item. A chunk is recognised by its table. It does not contain the type of its
// tokens, so that comes from the index.json beside it, or from the caller. Reads and checks the
// whole table, in slices of 256 KiB; the tokens are not read. Refuses the items of other loaders,
// encrypted chunks, and chunks that exist only compressed.
#include <array>
#include <utility>
#include <vector>

#include "core/quote.h"
#include "format/json_reader.h"
#include "lowtide/error.h"
#include "token_format/token_list.h"
#include "token_format/token_source.h"

namespace lowtide::litdata {
namespace {

constexpr std::string_view kWord = "litdata";
constexpr std::string_view kDataSuffix = ".bin";
constexpr std::string_view kTokensLoader = "TokensLoader";
constexpr std::uint64_t kOffsetBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kSliceOffsets = 64 * 1024;

// torch's types by LitData's number; names that mean the same type have several numbers.
constexpr std::pair<std::uint64_t, std::string_view> kTorchTypes[] = {
    {11, "uint8"}, {12, "int8"},  {13, "int16"}, {14, "int16"}, {15, "int32"},
    {16, "int32"}, {17, "int64"}, {18, "int64"}, {20, "uint16"}};
constexpr std::pair<std::uint64_t, std::string_view> kNumpyTypes[] = {
    {0, "int8"},  {1, "int16"},  {2, "int32"},  {3, "int64"},
    {4, "uint8"}, {5, "uint16"}, {6, "uint32"}, {7, "uint64"}};

DType type_of(std::string_view format) {
  const auto find = [&](std::string_view prefix, auto types) -> std::optional<DType> {
    if (!format.starts_with(prefix)) return std::nullopt;
    for (const auto& [code, name] : types) {
      if (format.substr(prefix.size()) == std::to_string(code)) return DType::parse(name);
    }
    return std::nullopt;
  };
  if (const auto torch = find("no_header_tensor:", std::span(kTorchTypes))) return *torch;
  if (const auto numpy = find("no_header_numpy:", std::span(kNumpyTypes))) return *numpy;
  throw FormatError(
      "expected the data_format of one tensor of integers, such as "
      "'no_header_tensor:20' (uint16), found " +
      excerpt(format));
}

// What the index says about all chunks.
struct Config {
  std::string compression;
  std::string loader;
  std::vector<std::string> formats;  // of the leaves of an item
  bool encrypted = false;
};

constexpr std::size_t kMaxLeaves = 4096;

Config read_config(JsonReader* json) {
  Config config;
  std::string key;
  json->begin_object();
  while (json->next_key(&key)) {
    if (json->null()) continue;
    if (key == "compression") {
      config.compression = json->string();
    } else if (key == "item_loader") {
      config.loader = json->string();
    } else if (key == "encryption") {
      config.encrypted = true;
      json->skip();
    } else if (key == "data_format") {
      json->begin_array();
      while (json->next_item()) {
        if (config.formats.size() == kMaxLeaves) json->fail("at most 4096 leaves");
        config.formats.push_back(json->string());
      }
    } else {
      json->skip();
    }
  }
  return config;
}

ListedFile read_chunk(JsonReader* json) {
  ListedFile file;
  bool has_name = false, has_bytes = false, has_size = false;
  std::string key;
  json->begin_object();
  while (json->next_key(&key)) {
    if (key == "filename") {
      file.name = listed_name(json->string());
      has_name = true;
    } else if (key == "chunk_bytes") {
      file.file_bytes = json->whole_number();
      has_bytes = true;
    } else if (key == "chunk_size") {
      file.documents = json->whole_number();
      has_size = true;
    } else if (key == "dim" && !json->null()) {
      file.tokens = json->whole_number();
    } else if (key != "dim") {
      json->skip();
    }
  }
  if (!has_name || !has_bytes || !has_size) {
    json->fail("filename, chunk_bytes and chunk_size of a chunk before this");
  }
  return file;
}

void check_config(const Config& config) {
  if (config.encrypted) {
    throw FormatError(
        "these chunks are encrypted; decrypt them with LitData, or write them again "
        "without encryption");
  }
  if (config.loader == kTokensLoader) return;
  throw FormatError("expected chunks of the item loader TokensLoader, found " +
                    excerpt(config.loader.empty() ? "none" : config.loader) +
                    "; write the tokens again with litdata.optimize(..., "
                    "item_loader=litdata.TokensLoader())");
}

// A compressed chunk has the compression in its name, and LitData unpacks it to the name without.
void note_packed(const std::string& compression, ListedFile* file) {
  const std::string packed_suffix = "." + compression + std::string(kDataSuffix);
  if (!file->name.ends_with(packed_suffix)) {
    throw FormatError("expected the name of a chunk that ends in " + excerpt(packed_suffix) +
                      ", because compression is " + excerpt(compression) + ", found " +
                      excerpt(file->name));
  }
  file->packed_name = file->name;
  file->compression = compression;
  file->name.resize(file->name.size() - packed_suffix.size());
  file->name += kDataSuffix;
}

void read_list(std::string_view text, TokenFileList* list) {
  std::optional<Config> config;
  JsonReader json(text);
  std::string key;
  json.begin_object();
  while (json.next_key(&key)) {
    if (key == "config" && !json.null()) {
      config = read_config(&json);
    } else if (key == "chunks") {
      json.begin_array();
      while (json.next_item()) {
        if (list->files.size() == kMaxListedFiles) json.fail("at most 1048576 chunks");
        list->files.push_back(read_chunk(&json));
      }
    } else if (key != "config") {
      json.skip();
    }
  }
  if (!config) throw FormatError("expected the key 'config', found none");
  check_config(*config);
  if (config->formats.size() != 1) {
    throw FormatError("expected one entry in data_format, found " +
                      std::to_string(config->formats.size()));
  }
  list->dtype = type_of(config->formats.front());
  if (config->compression.empty()) return;
  for (ListedFile& file : list->files) note_packed(config->compression, &file);
}

std::uint64_t table_end(std::uint64_t items) {
  return kOffsetBytes * (items + 2);
}

std::uint32_t read_word(const TokenFile& file, std::uint64_t at_bytes) {
  std::array<std::byte, kOffsetBytes> word;
  file.read(at_bytes, word);
  return load_little<std::uint32_t>(word.data());
}

// The items start where the table ends, and end where the file does: 64 bits that agree.
bool matches(const TokenSource& source) {
  if (source.start.size() < kTokenStartBytes) return false;
  const std::uint64_t items = load_little<std::uint32_t>(source.start.data());
  const std::uint64_t first = load_little<std::uint32_t>(&source.start[kOffsetBytes]);
  const TokenFile& file = source.file;
  return first == table_end(items) && first <= file.file_bytes &&
         read_word(file, first - kOffsetBytes) == file.file_bytes;
}

std::uint64_t read_items(const TokenFile& file) {
  if (file.file_bytes < table_end(0)) {
    throw FormatError(file.path + ": expected a LitData chunk of at least 8 bytes, found " +
                      std::to_string(file.file_bytes));
  }
  const std::uint64_t items = read_word(file, 0);
  if (table_end(items) <= file.file_bytes) return items;
  throw FormatError(file.path + ": expected a table of " + std::to_string(table_end(items)) +
                    " bytes for the " + std::to_string(items) +
                    " items of bytes 0 to 3, found the end at byte " +
                    std::to_string(file.file_bytes));
}

[[noreturn]] void fail_offset(const TokenFile& file, std::uint64_t item,
                              const std::string& expected, std::uint64_t found) {
  throw FormatError(file.path + ": offset " + std::to_string(item) + " (at byte " +
                    std::to_string(kOffsetBytes * (item + 1)) + "): expected " + expected +
                    ", found " + std::to_string(found));
}

void check_offsets(const TokenFile& file, std::uint64_t items, std::uint64_t token_bytes) {
  const std::uint64_t begin = table_end(items);
  std::vector<std::byte> slice(std::min(items + 1, kSliceOffsets) * kOffsetBytes);
  std::uint64_t before = begin;
  for (std::uint64_t first = 0; first <= items; first += kSliceOffsets) {
    const std::uint64_t count = std::min(kSliceOffsets, items + 1 - first);
    file.read(kOffsetBytes * (first + 1), std::span(slice).first(count * kOffsetBytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t offset = load_little<std::uint32_t>(&slice[i * kOffsetBytes]);
      const std::uint64_t item = first + i;
      if (item == 0 && offset != begin) {
        fail_offset(file, 0, "the end of the table, " + std::to_string(begin), offset);
      }
      if (offset < before) fail_offset(file, item, std::to_string(before) + " or more", offset);
      if (offset > file.file_bytes) {
        fail_offset(file, item, "at most the size " + std::to_string(file.file_bytes), offset);
      }
      if ((offset - begin) % token_bytes != 0) {
        fail_offset(file, item,
                    "a whole number of tokens of " + std::to_string(token_bytes) +
                        " bytes after byte " + std::to_string(begin),
                    offset);
      }
      before = offset;
    }
  }
  if (before != file.file_bytes) {
    fail_offset(file, items, "the size " + std::to_string(file.file_bytes), before);
  }
}

DType dtype_of(const TokenSource& source) {
  if (source.given.dtype) return *source.given.dtype;
  const std::string& path = source.file.path;
  const std::string index = path.substr(0, path.rfind('/') + 1) + std::string(kTokenListName);
  if (const std::optional<TokenFile> list = source.beside(index)) {
    TokenGiven given = source.given;
    given.format = kWord;
    return read_token_list(*list, given).dtype.value();
  }
  throw FormatError(path + ": expected an " + std::string(kTokenListName) +
                    " beside this LitData chunk, found none: it contains the type of the tokens "
                    "and the order of the chunks. To read the chunk without it, give the dtype");
}

TokenLayout open(const TokenSource& source) {
  const TokenFile& file = source.file;
  const std::uint64_t items = read_items(file);
  const DType dtype = dtype_of(source);
  check_offsets(file, items, dtype.itemsize_bytes);
  const std::uint64_t begin = table_end(items);
  TokenLayout layout =
      one_extent(file.path, dtype, begin, (file.file_bytes - begin) / dtype.itemsize_bytes);
  layout.documents = {.path = file.path,
                      .by = DocumentsBy::byte_offsets,
                      .sequences = items,
                      .documents = items,
                      .documents_offset_bytes = kOffsetBytes};
  return layout;
}

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = kWord,
                                    .suffix = kDataSuffix,
                                    .matches = matches,
                                    .open = open,
                                    .list_key = "chunks",
                                    .read_list = read_list};

}  // namespace lowtide::litdata
