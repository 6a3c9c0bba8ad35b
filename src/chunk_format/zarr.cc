#include "chunk_format/zarr.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "chunk_format/chunked_array.h"
#include "chunk_format/zarr_json.h"
#include "core/checked.h"
#include "core/quote.h"
#include "format/descr.h"
#include "lowtide/error.h"

namespace lowtide {
namespace zarr {
namespace {

using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 32;

// Whether the elements of a chunk are in the same place in both orders.
bool has_one_axis(const Shape& chunk) {
  return std::ranges::count_if(chunk, [](std::uint64_t extent) { return extent > 1; }) <= 1;
}

[[noreturn]] void fail_codec(const std::string& name) {
  throw FormatError("expected uncompressed chunks, found the codec " + excerpt(name) +
                    ": write a copy without compressors and filters");
}

[[noreturn]] void fail_order() {
  throw FormatError(
      "expected chunks in C order, found another order of axes: write a copy in C order");
}

// The list of fields of version 2, [["x", "<i2"], ["y", "<f8", [2]]], as NumPy spells it.
std::string descr_text(std::string_view json) {
  if (json.starts_with('"')) return python_repr(string_of(json));
  std::string fields;
  for (const std::string_view field : list_of(json)) {
    const auto parts = list_of(field);
    if (parts.size() < 2 || parts.size() > 3) {
      throw FormatError("expected fields with a name, a type and perhaps a shape, found " +
                        excerpt(field));
    }
    fields += "(" + python_repr(string_of(parts[0])) + ", " + descr_text(parts[1]);
    if (parts.size() == 3) fields += ", " + shape_text(numbers_of(parts[2]));
    fields += "), ";
  }
  return "[" + fields + "]";
}

// The type of version 3; its byte order is that of the codec.
DType type_of(std::string_view json, bool big_endian) {
  const std::string order = big_endian ? ">" : "<";
  const bool is_plain = json.starts_with('"');
  const Members about(is_plain ? std::string_view("{}") : json);
  const std::string name = string_of(is_plain ? json : about.at("name"));
  const Members with(is_plain ? std::string_view("{}") : about.at("configuration"));
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"bool", "b1"},      {"int8", "i1"},       {"int16", "i2"},   {"int32", "i4"},
      {"int64", "i8"},     {"uint8", "u1"},      {"uint16", "u2"},  {"uint32", "u4"},
      {"uint64", "u8"},    {"float16", "f2"},    {"float32", "f4"}, {"float64", "f8"},
      {"complex64", "c8"}, {"complex128", "c16"}};
  for (const auto& [word, code] : kTypes) {
    if (is_plain && name == word) return DType::parse(order + std::string(code));
  }
  const auto sized = [&](const char* kind, std::uint64_t bytes) {
    return DType::parse(order + kind + std::to_string(bytes));
  };
  const bool raw =
      is_plain && name.starts_with('r') && name.size() > 1 && name.size() < 12 &&
      std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (raw && std::stoull(name.substr(1)) % 8 == 0)
    return sized("V", std::stoull(name.substr(1)) / 8);
  if (!is_plain && name == "null_terminated_bytes")
    return sized("S", number_of(with.at("length_bytes")));
  if (!is_plain && name == "raw_bytes") return sized("V", number_of(with.at("length_bytes")));
  if (!is_plain && name == "fixed_length_utf32")
    return sized("U", number_of(with.at("length_bytes")) / 4);
  if (!is_plain && (name == "numpy.datetime64" || name == "numpy.timedelta64")) {
    const std::string scale = std::to_string(number_of(with.at("scale_factor")));
    return DType::parse(order + (name == "numpy.datetime64" ? "M8[" : "m8[") + scale +
                        string_of(with.at("unit")) + "]");
  }
  throw FormatError("expected a data type that NumPy has, found " + excerpt(name));
}

struct Codec {
  std::string name;
  std::string_view configuration;  // "{}" if there is none
};

std::vector<Codec> codecs_of(std::string_view json) {
  std::vector<Codec> all;
  for (const std::string_view one : list_of(json)) {
    if (one.starts_with('"')) {
      all.push_back({string_of(one), "{}"});
      continue;
    }
    const Members members(one);
    const std::string_view with = members.find("configuration");
    all.push_back({string_of(members.at("name")), with.empty() ? "{}" : with});
  }
  return all;
}

bool is_big_endian(const Codec& bytes) {
  const Members with(bytes.configuration);
  if (with.find("endian").empty()) return false;
  const std::string word = string_of(with.at("endian"));
  if (word != "little" && word != "big")
    throw FormatError("expected endian \"little\" or \"big\", found " + excerpt(word));
  return word == "big";
}

// Removes codecs that change nothing, and refuses those that change what only other codecs undo.
// `chunk` is the shape that they see.
std::vector<Codec> plain_codecs(std::vector<Codec> codecs, const Shape& chunk) {
  while (!codecs.empty() && codecs.front().name == "transpose") {
    const Shape order = numbers_of(Members(codecs.front().configuration).at("order"));
    if (!std::ranges::is_sorted(order) && !has_one_axis(chunk)) fail_order();
    codecs.erase(codecs.begin());
  }
  if (codecs.empty()) throw FormatError("expected the codec \"bytes\", found none");
  const bool known = codecs[0].name == "bytes" || codecs[0].name == "sharding_indexed";
  if (!known) fail_codec(codecs[0].name);
  if (codecs.size() > 1) fail_codec(codecs[1].name);
  return codecs;
}

ShardIndex shard_index(const Members& with) {
  ShardIndex index;
  const std::vector<Codec> codecs = codecs_of(with.at("index_codecs"));
  const bool known = !codecs.empty() && codecs.size() <= 2 && codecs[0].name == "bytes" &&
                     !is_big_endian(codecs[0]) &&
                     (codecs.size() == 1 || codecs[1].name == "crc32c");
  if (!known) {
    throw FormatError(
        "expected a shard index with the codecs \"bytes\" (little) and \"crc32c\", found " +
        excerpt(with.at("index_codecs")));
  }
  index.has_checksum = codecs.size() == 2;
  if (const std::string_view place = with.find("index_location"); !place.empty()) {
    const std::string word = string_of(place);
    if (word != "start" && word != "end")
      throw FormatError("expected index_location \"start\" or \"end\", found " + excerpt(word));
    index.at_end = word == "end";
  }
  return index;
}

void check_axes(const Shape& chunk, const Shape& shape) {
  if (chunk.size() == shape.size() && std::ranges::find(chunk, 0U) == chunk.end()) return;
  throw FormatError("expected chunks of " + std::to_string(shape.size()) +
                    " axes, all longer than 0, found shape " + shape_text(chunk));
}

// Fills in what follows from the rest.
void finish(ChunkedArray* array, std::string_view fill, const std::string& path) {
  check_axes(array->file_shape, array->layout.shape);
  check_axes(array->chunk_shape, array->layout.shape);
  std::uint64_t entries = 1;
  for (std::size_t axis = 0; axis < array->chunk_shape.size(); ++axis) {
    const std::uint64_t of = array->file_shape[axis], in = array->chunk_shape[axis];
    if (of % in != 0 || !checked_mul(entries, of / in, &entries) || entries > kMaxEntries) {
      throw FormatError("expected shards that consist of at most 2^32 whole chunks, found shape " +
                        shape_text(array->file_shape) + " with chunks of " +
                        shape_text(array->chunk_shape));
    }
  }
  if (array->index) array->index->entries = entries;
  array->fill = parse_fill(fill, array->layout.dtype);
  array->layout.format = kWord;
  const std::size_t axes = array->layout.shape.size();
  array->layout = make_layout(std::move(array->layout), path);
  if (array->layout.shape.size() != axes)
    throw FormatError("expected a data type without a shape of its own");
  array->chunk_bytes = array->layout.dtype.itemsize_bytes;
  for (const std::uint64_t extent : array->chunk_shape) {
    if (!checked_mul(array->chunk_bytes, extent, &array->chunk_bytes))
      throw FormatError("expected chunks of less than 2^64 bytes, found shape " +
                        shape_text(array->chunk_shape));
  }
}

ChunkedArray parse_2(const Members& members, const std::string& path) {
  ChunkedArray array;
  for (const char* const name : {"compressor", "filters"}) {
    const std::string_view given = members.find(name);
    if (given.empty() || given == "null" || (given.starts_with('[') && list_of(given).empty()))
      continue;
    const std::string_view first = given.starts_with('[') ? list_of(given).front() : given;
    fail_codec(string_of(Members(first).at("id")));
  }
  array.layout.shape = numbers_of(members.at("shape"));
  array.chunk_shape = array.file_shape = numbers_of(members.at("chunks"));
  array.layout.dtype = parse_descr(descr_text(members.at("dtype")));
  const std::string order = string_of(members.at("order"));
  if (order != "C" && !(order == "F" && has_one_axis(array.chunk_shape))) fail_order();
  array.separator = '.';
  if (const std::string_view given = members.find("dimension_separator"); !given.empty()) {
    const std::string word = string_of(given);
    if (word != "." && word != "/")
      throw FormatError("expected the separator \".\" or \"/\", found " + excerpt(word));
    array.separator = word[0];
  }
  finish(&array, members.at("fill_value"), path);
  return array;
}

void read_names(std::string_view json, ChunkedArray* array) {
  const Members encoding(json);
  const std::string name = string_of(encoding.at("name"));
  if (name != "default" && name != "v2")
    throw FormatError("expected the chunk key encoding \"default\" or \"v2\", found " +
                      excerpt(name));
  array->has_prefix = name == "default";
  array->separator = array->has_prefix ? '/' : '.';
  const std::string_view given = encoding.find("configuration");
  const Members with(given.empty() ? std::string_view("{}") : given);
  if (with.find("separator").empty()) return;
  const std::string word = string_of(with.at("separator"));
  if (word != "." && word != "/")
    throw FormatError("expected the separator \".\" or \"/\", found " + excerpt(word));
  array->separator = word[0];
}

ChunkedArray parse_3(const Members& members, const std::string& path) {
  ChunkedArray array;
  const std::string_view transformers = members.find("storage_transformers");
  if (!transformers.empty() && !list_of(transformers).empty())
    throw FormatError("expected no storage transformers, found " + excerpt(transformers));
  array.layout.shape = numbers_of(members.at("shape"));
  const Members grid(members.at("chunk_grid"));
  if (const std::string name = string_of(grid.at("name")); name != "regular")
    throw FormatError("expected the chunk grid \"regular\", found " + excerpt(name));
  array.file_shape = numbers_of(Members(grid.at("configuration")).at("chunk_shape"));
  array.chunk_shape = array.file_shape;
  read_names(members.at("chunk_key_encoding"), &array);
  std::vector<Codec> codecs = plain_codecs(codecs_of(members.at("codecs")), array.file_shape);
  if (codecs[0].name == "sharding_indexed") {
    const Members with(codecs[0].configuration);
    array.index = shard_index(with);
    array.chunk_shape = numbers_of(with.at("chunk_shape"));
    codecs = plain_codecs(codecs_of(with.at("codecs")), array.chunk_shape);
    if (codecs[0].name != "bytes") fail_codec(codecs[0].name);
  }
  array.layout.dtype = type_of(members.at("data_type"), is_big_endian(codecs[0]));
  finish(&array, members.at("fill_value"), path);
  return array;
}

constexpr std::string_view kWords[] = {kWord};
constexpr std::string_view kFiles[] = {kNodeFile, kArrayFile, kGroupFile};

}  // namespace
}  // namespace zarr

std::span<const std::string_view> chunk_words() {
  return zarr::kWords;
}

std::span<const std::string_view> metadata_files() {
  return zarr::kFiles;
}

std::string ChunkedArray::file_name(std::span<const std::uint64_t> place) const {
  std::string name = has_prefix ? "c" : "";
  for (const std::uint64_t number : place) {
    if (!name.empty()) name += separator;
    name += std::to_string(number);
  }
  return name.empty() ? "0" : name;
}

std::optional<ChunkedArray> parse_metadata(std::string_view text, std::string_view file,
                                           const std::string& path) try {
  using namespace zarr;
  const Members members(text);
  const std::uint64_t version = number_of(members.at("zarr_format")),
                      expected = file == kNodeFile ? 3 : 2;
  if (version != expected) {
    throw FormatError("expected zarr_format " + std::to_string(expected) + ", found " +
                      std::to_string(version));
  }
  if (file == kGroupFile) return std::nullopt;
  if (file == kArrayFile) return parse_2(members, path);
  const std::string node = string_of(members.at("node_type"));
  if (node == "group") return std::nullopt;
  if (node != "array")
    throw FormatError("expected node_type \"array\" or \"group\", found " + excerpt(node));
  return parse_3(members, path);
} catch (const FormatError& error) {
  const std::string said = error.what();
  throw FormatError(said.starts_with(path) ? said : path + ": " + said);
}

}  // namespace lowtide
