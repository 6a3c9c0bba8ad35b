#include <algorithm>

#include "core/checked.h"
#include "core/quote.h"
#include "core/token_type.h"
#include "format/json_reader.h"
#include "lowtide/error.h"
#include "token_format/mds.h"

namespace lowtide::mds {
namespace {

constexpr std::string_view kTokens = "tokens";
constexpr std::string_view kArray = "ndarray";
constexpr std::string_view kBytes = "bytes";
constexpr std::string_view kPickle = "pkl";
constexpr std::size_t kMaxColumns = 1024;
constexpr std::uint64_t kMaxShardBytes = UINT32_MAX;  // offsets have 32 bits

struct Column {
  std::string name;
  std::string encoding;
  std::optional<std::uint64_t> size_bytes;
};

template <typename Read>
void read_entries(JsonReader* json, std::vector<Column>* columns, const Read& read) {
  std::size_t count = 0;
  json->begin_array();
  while (json->next_item()) {
    if (count == kMaxColumns) json->fail("at most 1024 columns");
    if (columns->size() == count) columns->emplace_back();
    read(&(*columns)[count++]);
  }
}

std::uint64_t read_fixed_size(JsonReader* json) {
  const std::uint64_t size = json->whole_number();
  if (size == 0 || size > kMaxShardBytes) json->fail("a size from 1 to 2^32 - 1 before this");
  return size;
}

std::vector<Column> read_columns(std::string_view text) {
  std::vector<Column> columns;
  std::size_t names = 0, encodings = 0, sizes = 0;
  JsonReader json(text);
  std::string key;
  json.begin_object();
  while (json.next_key(&key)) {
    if (key == "column_names") {
      read_entries(&json, &columns, [&](Column* one) { one->name = json.string(), ++names; });
    } else if (key == "column_encodings") {
      read_entries(&json, &columns,
                   [&](Column* one) { one->encoding = json.string(), ++encodings; });
    } else if (key == "column_sizes") {
      read_entries(&json, &columns, [&](Column* one) {
        if (!json.null()) one->size_bytes = read_fixed_size(&json);
        ++sizes;
      });
    } else {
      json.skip();
    }
  }
  json.end();
  if (names == columns.size() && encodings == names && sizes == names) return columns;
  throw FormatError(
      "expected equally many column_names, column_encodings and column_sizes, found " +
      std::to_string(names) + ", " + std::to_string(encodings) + " and " + std::to_string(sizes));
}

bool is_array(const Column& column) {
  return column.encoding == kArray || column.encoding.starts_with(std::string(kArray) + ":");
}

std::string shown_columns(const std::vector<Column>& columns) {
  constexpr std::size_t kShown = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(columns.size(), kShown); ++i) {
    text +=
        (i == 0 ? "" : ", ") + excerpt(columns[i].name) + " (" + excerpt(columns[i].encoding) + ")";
  }
  if (columns.size() > kShown) {
    text += " and " + std::to_string(columns.size() - kShown) + " more";
  }
  return columns.empty() ? "none" : text;
}

std::size_t choose(const std::vector<Column>& columns, const std::optional<std::string>& key) {
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == (key ? std::string_view(*key) : kTokens)) return i;
    if (is_array(columns[i]) || columns[i].encoding == kBytes) able.push_back(i);
  }
  if (!key && able.size() == 1) return able.front();
  throw FormatError((key ? "expected a column named " + excerpt(*key)
                         : std::string("expected a key, a column named 'tokens', or one column of "
                                       "encoding ndarray or bytes")) +
                    ", found the columns " + shown_columns(columns));
}

// The product of "2048" or "4,512"; 0 if it is something else.
std::uint64_t values_of(std::string_view shape) {
  std::uint64_t values = 1;
  while (true) {
    const std::string_view axis = shape.substr(0, shape.find(','));
    std::uint64_t size = 0;
    for (const char c : axis) {
      if (c < '0' || c > '9' || size > kMaxShardBytes) return 0;
      size = size * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (size > kMaxShardBytes || !checked_mul(values, size, &values)) return 0;
    if (values > kMaxShardBytes) return 0;
    if (axis.size() == shape.size()) return values;
    shape.remove_prefix(axis.size() + 1);
  }
}

// "ndarray", "ndarray:int32" or "ndarray:int32:2048".
void read_array_encoding(const Column& column, TokenColumn* out) {
  const auto fail = [&](const std::string& expected) {
    throw FormatError("column " + excerpt(column.name) + ": expected " + expected + ", found " +
                      excerpt(column.encoding));
  };
  out->encoding = Encoding::typed;
  if (column.encoding.size() > kArray.size()) {
    const std::string_view rest = std::string_view(column.encoding).substr(kArray.size() + 1);
    const std::string_view name = rest.substr(0, rest.find(':'));
    if (!token_type_named(name)) fail("an ndarray of integers such as 'ndarray:int32'");
    out->dtype = DType::parse(name);
    out->encoding = Encoding::shaped;
    if (name.size() < rest.size()) {
      const std::uint64_t values = values_of(rest.substr(name.size() + 1));
      if (values == 0) fail("a shape such as 'ndarray:int32:2048'");
      out->encoding = Encoding::plain;
      if (column.size_bytes != values * out->dtype->itemsize_bytes) {
        fail("an encoding of " +
             (column.size_bytes ? std::to_string(*column.size_bytes)
                                : std::string("any number of")) +
             " bytes, as column_sizes says");
      }
      return;
    }
  }
  if (column.size_bytes) fail("null in column_sizes");
}

TokenColumn token_column(const Column& column) {
  TokenColumn out;
  out.name = column.name;
  out.size_bytes = column.size_bytes;
  if (is_array(column)) {
    read_array_encoding(column, &out);
  } else if (column.encoding == kPickle) {
    throw FormatError("column " + excerpt(column.name) +
                      " contains Python pickles, which Lowtide never loads; write the tokens again "
                      "with the encoding ndarray:int32");
  } else if (column.encoding != kBytes || column.size_bytes) {
    throw FormatError("column " + excerpt(column.name) +
                      ": expected the encoding ndarray or bytes for tokens, found " +
                      excerpt(column.encoding));
  }
  return out;
}

// "raw_data" and "zip_data" have the same keys.
struct ShardFile {
  std::string name;
  std::optional<std::uint64_t> bytes;
};

ShardFile read_file(JsonReader* json) {
  ShardFile file;
  std::string key;
  json->begin_object();
  while (json->next_key(&key)) {
    if (key == "basename") {
      file.name = listed_name(json->string());
    } else if (key == "bytes") {
      file.bytes = json->whole_number();
    } else {
      json->skip();
    }
  }
  if (file.name.empty() || !file.bytes) json->fail("basename and bytes of a file before this");
  return file;
}

ListedFile read_shard(JsonReader* json) {
  ListedFile shard;
  std::string format;
  std::optional<std::uint64_t> version, samples;
  std::string key;
  json->begin_object();
  while (json->next_key(&key)) {
    if (json->null()) continue;
    if (key == "format") {
      format = json->string();
    } else if (key == "version") {
      version = json->whole_number();
    } else if (key == "samples") {
      samples = json->whole_number();
    } else if (key == "compression") {
      shard.compression = json->string();
    } else if (key == "raw_data") {
      const ShardFile raw = read_file(json);
      shard.name = raw.name;
      shard.file_bytes = *raw.bytes;
    } else if (key == "zip_data") {
      shard.packed_name = read_file(json).name;
    } else {
      json->skip();
    }
  }
  if (version != 2 || format != "mds")
    json->fail("a shard of version 2 and format \"mds\" before this");
  if (shard.name.empty() || !samples) json->fail("raw_data and samples of a shard before this");
  shard.documents = *samples;
  return shard;
}

}  // namespace

TokenColumn read_token_column(std::string_view json, const std::optional<std::string>& key) {
  const std::vector<Column> columns = read_columns(json);
  const std::size_t chosen = choose(columns, key);
  TokenColumn out = token_column(columns[chosen]);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == chosen) continue;
    const bool before = i < chosen;
    if (columns[i].size_bytes) {
      (before ? out.fixed_bytes_before : out.fixed_bytes_after) += *columns[i].size_bytes;
    } else {
      ++(before ? out.sizes_before : out.sizes_after);
    }
  }
  return out;
}

void read_list(std::string_view text, TokenFileList* list) {
  JsonReader json(text);
  std::string key;
  json.begin_object();
  while (json.next_key(&key)) {
    if (key != "shards") {
      json.skip();
      continue;
    }
    json.begin_array();
    while (json.next_item()) {
      if (list->files.size() == kMaxListedFiles) json.fail("at most 1048576 shards");
      list->files.push_back(read_shard(&json));
    }
  }
}

}  // namespace lowtide::mds
