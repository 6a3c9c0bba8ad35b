// safetensors: the length of a JSON header, the header, the tensors one after the other. The header
// says of each tensor its type, its shape and where it is.
//
// As the reference does, refuses tensors that overlap, gaps between them and bytes after the last
// one. A type that NumPy lacks is void with the name that ml_dtypes and torch have for it.
#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "core/quote.h"
#include "format/array_format.h"
#include "format/json_reader.h"
#include "lowtide/error.h"

namespace lowtide::safetensors {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadataKey = "__metadata__";

struct TypeName {
  std::string_view name;   // in the header
  std::string_view descr;  // what NumPy calls it
  std::string_view extension = {};
};

constexpr TypeName kTypeNames[] = {
    {"BOOL", "|b1"},
    {"U8", "|u1"},
    {"I8", "|i1"},
    {"I16", "<i2"},
    {"U16", "<u2"},
    {"F16", "<f2"},
    {"I32", "<i4"},
    {"U32", "<u4"},
    {"F32", "<f4"},
    {"I64", "<i8"},
    {"U64", "<u8"},
    {"F64", "<f8"},
    {"C64", "<c8"},
    {"BF16", "|V2", "bfloat16"},
    {"F8_E4M3", "|V1", "float8_e4m3fn"},
    {"F8_E5M2", "|V1", "float8_e5m2"},
    {"F8_E8M0", "|V1", "float8_e8m0fnu"},
    {"F8_E4M3FNUZ", "|V1", "float8_e4m3fnuz"},
    {"F8_E5M2FNUZ", "|V1", "float8_e5m2fnuz"},
};

// What the header says of one tensor. Offsets count from the first tensor.
struct Tensor {
  std::string name;
  std::string type;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::vector<std::uint64_t> read_numbers(JsonReader* json, std::size_t most) {
  std::vector<std::uint64_t> numbers;
  json->begin_array();
  while (json->next_item()) {
    if (numbers.size() == most) json->fail("at most " + std::to_string(most) + " numbers");
    numbers.push_back(json->whole_number());
  }
  return numbers;
}

Tensor read_tensor(JsonReader* json) {
  Tensor tensor;
  bool has_type = false, has_shape = false, has_offsets = false;
  std::string key;
  json->begin_object();
  while (json->next_key(&key)) {
    bool& has = key == "dtype" ? has_type : key == "shape" ? has_shape : has_offsets;
    const bool known = key == "dtype" || key == "shape" || key == "data_offsets";
    if (!known || has) json->fail("each of dtype, shape and data_offsets once");
    has = true;
    if (key == "dtype") {
      tensor.type = json->string();
    } else if (key == "shape") {
      tensor.shape = read_numbers(json, kMaxAxes);
    } else {
      const std::vector<std::uint64_t> offsets = read_numbers(json, 2);
      if (offsets.size() != 2 || offsets[0] > offsets[1])
        json->fail("data_offsets [begin, end] before this");
      tensor.begin = offsets[0];
      tensor.end = offsets[1];
    }
  }
  if (!has_type || !has_shape || !has_offsets)
    json->fail("dtype, shape and data_offsets before this");
  return tensor;
}

void check_metadata(JsonReader* json) {
  std::unordered_set<std::string> keys;
  std::string key;
  json->begin_object();
  while (json->next_key(&key)) {
    if (!keys.insert(key).second) json->fail("each key of __metadata__ once");
    (void)json->string();
  }
}

std::vector<Tensor> read_tensors(std::string_view text) {
  std::vector<Tensor> tensors;
  std::unordered_set<std::string> names;
  JsonReader json(text);
  std::string name;
  json.begin_object();
  while (json.next_key(&name)) {
    if (!names.insert(name).second) json.fail("each tensor once, but " + excerpt(name) + " twice");
    if (name == kMetadataKey) {
      check_metadata(&json);
      continue;
    }
    if (tensors.size() == kMaxMembers) json.fail("at most 262144 tensors");
    tensors.push_back(read_tensor(&json));
    tensors.back().name = name;
  }
  json.end();
  return tensors;
}

// Throws FormatError unless the tensors fill all of `data_bytes`, each byte once.
void check_places(const std::vector<Tensor>& tensors, std::uint64_t data_bytes,
                  const ArraySource& source) {
  std::vector<std::size_t> by_place(tensors.size());
  std::iota(by_place.begin(), by_place.end(), std::size_t{0});
  std::ranges::sort(by_place, [&](std::size_t a, std::size_t b) {
    return std::pair(tensors[a].begin, tensors[a].end) <
           std::pair(tensors[b].begin, tensors[b].end);
  });
  std::uint64_t reached = 0;
  for (const std::size_t i : by_place) {
    const Tensor& tensor = tensors[i];
    if (tensor.begin != reached) {
      throw FormatError(source.path + ": tensor " + excerpt(tensor.name) +
                        ": expected data_offsets that begin at " + std::to_string(reached) +
                        ", where the tensor before it ends, found " + std::to_string(tensor.begin) +
                        (tensor.begin < reached ? " (they overlap)" : " (a gap)"));
    }
    reached = tensor.end;
  }
  if (reached != data_bytes) {
    throw FormatError(source.path + ": expected " + std::to_string(reached) +
                      " bytes of tensors after the header, found " + std::to_string(data_bytes) +
                      " (the file has " + std::to_string(source.file_bytes) + " bytes)");
  }
}

ArrayMember member_of(Tensor tensor, std::uint64_t data_offset_bytes, const std::string& path) {
  ArrayMember member;
  member.key = std::move(tensor.name);
  const std::string where = path + ": tensor " + excerpt(member.key);
  const auto* const type = std::ranges::find(kTypeNames, tensor.type, &TypeName::name);
  if (type == std::end(kTypeNames)) {
    member.fault = where + ": expected a dtype that Lowtide knows, found " + excerpt(tensor.type);
    return member;
  }
  Layout layout;
  layout.dtype = DType::parse(type->descr);
  layout.dtype.extension = type->extension;
  layout.shape = std::move(tensor.shape);
  layout.data_offset_bytes = data_offset_bytes + tensor.begin;
  member.layout = make_layout(std::move(layout), where);
  const std::uint64_t found = tensor.end - tensor.begin;
  if (member.layout.data_bytes == found) return member;
  throw FormatError(where + ": expected data_offsets " + std::to_string(member.layout.data_bytes) +
                    " bytes apart for " + tensor.type + " of shape " +
                    shape_text(member.layout.shape) + ", found " + std::to_string(found));
}

bool matches(const ArrayFormat& format, const ArraySource& source) {
  if (source.path.ends_with(format.suffix)) return true;
  if (source.start.size() < kLengthBytes + 2) return false;
  const std::string_view start(reinterpret_cast<const char*>(source.start.data()),
                               source.start.size());
  const std::uint64_t header_bytes = little_at(start, 0, kLengthBytes);
  return header_bytes >= 2 && header_bytes <= kMaxHeaderBytes &&
         header_bytes <= source.file_bytes - kLengthBytes && start[kLengthBytes] == '{' &&
         std::string_view("\"} ").find(start[kLengthBytes + 1]) != std::string_view::npos;
}

std::uint64_t header_size(const ArraySource& source) {
  if (source.file_bytes < kLengthBytes) {
    throw FormatError(source.path +
                      ": expected the length of a safetensors header in bytes 0 to 7, " +
                      "found the end at byte " + std::to_string(source.file_bytes));
  }
  const std::uint64_t size = little_at(read_text(source, 0, kLengthBytes), 0, kLengthBytes);
  if (size > kMaxHeaderBytes) {
    throw FormatError(source.path + ": expected a safetensors header of at most " +
                      std::to_string(kMaxHeaderBytes) + " bytes, found the length " +
                      std::to_string(size) + " in bytes 0 to 7");
  }
  if (size > source.file_bytes - kLengthBytes) {
    throw FormatError(source.path + ": expected a safetensors header of " + std::to_string(size) +
                      " bytes at byte 8, found the end at byte " +
                      std::to_string(source.file_bytes));
  }
  return size;
}

std::vector<ArrayMember> members(const ArrayFormat&, const ArraySource& source,
                                 const std::optional<std::string>&) {
  const std::uint64_t header_bytes = header_size(source);
  std::vector<Tensor> tensors;
  try {
    tensors = read_tensors(read_text(source, kLengthBytes, header_bytes));
  } catch (const FormatError& error) {
    throw FormatError(source.path + ": safetensors header: " + error.what());
  }
  check_places(tensors, source.file_bytes - kLengthBytes - header_bytes, source);
  std::vector<ArrayMember> all;
  all.reserve(tensors.size());
  for (Tensor& tensor : tensors) {
    all.push_back(member_of(std::move(tensor), kLengthBytes + header_bytes, source.path));
  }
  return all;
}

constexpr ArrayFormat kEntries[] = {
    {.word = "safetensors", .suffix = ".safetensors", .matches = matches, .members = members}};

}  // namespace

extern const std::span<const ArrayFormat> kFormats;  // for the list of registry.cc
constinit const std::span<const ArrayFormat> kFormats = kEntries;

}  // namespace lowtide::safetensors
