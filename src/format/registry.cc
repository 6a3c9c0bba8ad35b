#include "format/registry.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "core/quote.h"
#include "format/array_format.h"
#include "format/foreign.h"
#include "format/npy.h"
#include "lowtide/error.h"

// Every array format with a header, one word per file of this room. The first one that matches
// opens the file, so formats with a magic come before those that are recognised only by name. Any
// other file is raw. The list is a macro because it is used twice: to declare each file's kFormats,
// and to collect them.
#define LOWTIDE_ARRAY_FORMATS(format) \
  format(npy) format(safetensors) format(npz) format(bins) format(vecs)

namespace lowtide {

#define LOWTIDE_DECLARE(name)                         \
  namespace name {                                    \
  extern const std::span<const ArrayFormat> kFormats; \
  }
LOWTIDE_ARRAY_FORMATS(LOWTIDE_DECLARE)
#undef LOWTIDE_DECLARE

namespace {

#define LOWTIDE_ADDRESS(name) &name::kFormats,
constexpr const std::span<const ArrayFormat>* kFamilies[] = {
    LOWTIDE_ARRAY_FORMATS(LOWTIDE_ADDRESS)};
#undef LOWTIDE_ADDRESS
#undef LOWTIDE_ARRAY_FORMATS

constexpr std::size_t kShownKeys = 8;

[[noreturn]] void fail_given(const std::string& path, const std::string& what,
                             const std::string& given, const std::string& header) {
  throw FormatError(path + ": " + what + " " + given + " was given, but the header says " + header);
}

// A caller who uses NumPy can only pass plain void for a type that NumPy lacks, such as bfloat16.
// So an extension name is compared only if one was given.
bool same_dtype(const DType& given, DType stored) {
  if (given.extension.empty()) stored.extension.clear();
  return given == stored;
}

[[noreturn]] void fail_key(const std::string& path, const std::string& key) {
  throw std::invalid_argument(path + ": key " + excerpt(key) +
                              " was given, but the file contains one array without a name; leave " +
                              "the key out");
}

Layout open_raw(const ArraySource& source, const raw::Description& given) {
  // A dtype is the caller's statement that the bytes are raw data, whatever they look like.
  if (!given.dtype) refuse_foreign(source.path, source.file_bytes, source.read, "an array");
  if (given.key) fail_key(source.path, *given.key);
  return raw::describe(given, source.file_bytes, source.path);
}

std::string shown_keys(const std::vector<ArrayMember>& members) {
  std::string text;
  for (std::size_t i = 0; i < std::min(members.size(), kShownKeys); ++i) {
    text += (i == 0 ? "" : ", ") + excerpt(members[i].key);
  }
  if (members.size() > kShownKeys) {
    text += " and " + std::to_string(members.size() - kShownKeys) + " more";
  }
  return text;
}

// The source of a file, with the bytes that every format looks at.
struct Opened {
  Opened(const std::string& path, std::uint64_t file_bytes, const ReadStart& read)
      : source{path, file_bytes, read,
               std::span(start).first(std::min<std::uint64_t>(file_bytes, kArrayStartBytes))} {
    if (file_bytes == 0) throw FormatError(path + ": expected data, found an empty file");
    read(0, std::span(start).first(source.start.size()));
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::array<std::byte, kArrayStartBytes> start{};
  ArraySource source;
};

const ArrayFormat* recognise(const ArraySource& source) {
  for (const auto* const family : kFamilies) {
    for (const ArrayFormat& format : *family) {
      if (format.matches(format, source)) return &format;
    }
  }
  return nullptr;
}

}  // namespace

void check_agrees(const Layout& layout, const raw::Description& given, const std::string& path) {
  const auto order = [](bool fortran) { return std::string(fortran ? "'F'" : "'C'"); };
  if (given.dtype && !same_dtype(*given.dtype, layout.dtype)) {
    fail_given(path, "dtype", given.dtype->descr(), layout.dtype.descr());
  }
  if (given.shape && *given.shape != layout.shape) {
    fail_given(path, "shape", shape_text(*given.shape), shape_text(layout.shape));
  }
  // On one axis both orders are the same bytes, so either word is true.
  const bool has_order = layout.shape.size() > 1;
  if (has_order && given.fortran_order && *given.fortran_order != layout.fortran_order) {
    fail_given(path, "order", order(*given.fortran_order), order(layout.fortran_order));
  }
  if (given.offset_bytes && *given.offset_bytes != layout.data_offset_bytes) {
    fail_given(path, "offset", std::to_string(*given.offset_bytes),
               std::to_string(layout.data_offset_bytes));
  }
}

const ArrayMember& chosen_member(const std::vector<ArrayMember>& members,
                                 std::string_view key_suffix, const std::optional<std::string>& key,
                                 const std::string& path) {
  if (members.empty()) throw FormatError(path + ": expected an array, found none in the file");
  if (!key && members.size() == 1) return members.front();
  if (!key) {
    throw FormatError(path + ": expected a key, because the file contains " +
                      std::to_string(members.size()) + " arrays: " + shown_keys(members));
  }
  const auto is_named = [&](const std::string& name) {
    return [&name](const ArrayMember& member) { return member.key == name; };
  };
  // As np.load does, with the suffix first: "a.npy" is the file "a.npy" rather than "a.npy.npy".
  auto found = members.end();
  if (!key_suffix.empty() && key->ends_with(key_suffix)) {
    const std::string short_key = key->substr(0, key->size() - key_suffix.size());
    found = std::ranges::find_if(members, is_named(short_key));
  }
  if (found == members.end()) found = std::ranges::find_if(members, is_named(*key));
  if (found != members.end()) return *found;
  throw FormatError(path + ": expected one of the keys " + shown_keys(members) +
                    ", found the key " + excerpt(*key));
}

bool has_key(const ArrayFormat& format, std::string_view name, std::string_view key) {
  return name == key || (key.size() == name.size() + format.key_suffix.size() &&
                         key.starts_with(name) && key.ends_with(format.key_suffix));
}

std::string read_text(const ArraySource& source, std::uint64_t offset_bytes,
                      std::uint64_t size_bytes) {
  std::string text(size_bytes, '\0');
  for (std::uint64_t done = 0; done < size_bytes;) {
    // In pieces: one read is at most as long as a header may be.
    const std::uint64_t now = std::min(size_bytes - done, npy::kMaxHeaderBytes);
    source.read(offset_bytes + done, std::as_writable_bytes(std::span(text).subspan(done, now)));
    done += now;
  }
  return text;
}

std::uint64_t little_at(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(text[at + i]);
  }
  return value;
}

Layout open_layout(const std::string& path, std::uint64_t file_bytes, const ReadStart& read,
                   const raw::Description& given) {
  const Opened opened(path, file_bytes, read);
  const ArrayFormat* format = given.headerless ? nullptr : recognise(opened.source);
  // A file can look like one of these formats by accident, so a dtype overrides those that are not
  // binding. A key shows that the caller means an array inside the file.
  const bool raw_bytes = format != nullptr && !format->binding && given.dtype && !given.key;
  if (format == nullptr || raw_bytes) return open_raw(opened.source, given);
  Layout layout;
  if (format->members == nullptr) {
    layout = format->open(*format, opened.source);
    if (given.key) fail_key(path, *given.key);
  } else {
    const std::vector<ArrayMember> members = format->members(*format, opened.source, given.key);
    const ArrayMember& member = chosen_member(members, format->key_suffix, given.key, path);
    if (!member.fault.empty()) throw FormatError(member.fault);
    layout = member.layout;
  }
  // Set here and not by the format itself, so that it always equals the word in the list.
  layout.format = format->word;
  check_agrees(layout, given, path);
  return layout;
}

std::vector<ArrayMember> array_members(const std::string& path, std::uint64_t file_bytes,
                                       const ReadStart& read) {
  const Opened opened(path, file_bytes, read);
  const ArrayFormat* const format = recognise(opened.source);
  if (format == nullptr || format->members == nullptr) return {};
  std::vector<ArrayMember> members = format->members(*format, opened.source, std::nullopt);
  for (ArrayMember& member : members) member.layout.format = format->word;
  return members;
}

std::vector<std::string_view> array_words() {
  std::vector<std::string_view> words;
  for (const auto* const family : kFamilies) {
    for (const ArrayFormat& format : *family) words.push_back(format.word);
  }
  words.push_back(raw::kWord);
  return words;
}

bool is_array_file(const std::string& path, std::uint64_t file_bytes, const ReadStart& read) {
  return recognise(Opened(path, file_bytes, read).source) != nullptr;
}

bool has_header(std::string_view format) {
  const std::vector<std::string_view> words = array_words();
  return format != raw::kWord && std::ranges::find(words, format) != words.end();
}

}  // namespace lowtide
