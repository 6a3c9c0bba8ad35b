// NumPy's .npz: a zip archive of .npy files, which np.savez stores as they are. The key of an array
// is the name of its file without ".npy", as in np.load. Other files in the archive are ignored.
//
// A compressed, encrypted or pickled array is a fault of that array only.
#include <algorithm>

#include "core/quote.h"
#include "core/utf8.h"
#include "format/npy.h"
#include "format/zip.h"
#include "lowtide/error.h"

namespace lowtide::npz {
namespace {

constexpr std::string_view kMemberSuffix = ".npy";
constexpr std::string_view kZipMagic = "PK\x03\x04";
constexpr std::uint64_t kLocalHeaderBytes = 30;
constexpr std::size_t kNameLengthAt = 26;

bool is_array(std::string_view name) {
  return name.size() > kMemberSuffix.size() && name.ends_with(kMemberSuffix);
}

// A zip archive is one of arrays if its name says so, or if its first member is an array.
bool matches(const ArrayFormat& format, const ArraySource& source) {
  if (source.path.ends_with(format.suffix)) return true;
  const std::string_view start(reinterpret_cast<const char*>(source.start.data()),
                               source.start.size());
  if (!start.starts_with(kZipMagic) || source.file_bytes < kLocalHeaderBytes) return false;
  const std::uint64_t name_bytes =
      little_at(read_text(source, 0, kLocalHeaderBytes), kNameLengthAt, 2);
  if (name_bytes > source.file_bytes - kLocalHeaderBytes) return false;
  return is_array(read_text(source, kLocalHeaderBytes, name_bytes));
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_size(bytes);
    if (size == 0 || bytes.front() == '\0') return false;
    bytes.remove_prefix(size);
  }
  return true;
}

Layout layout_of(const ArraySource& source, const ZipMember& member) {
  const std::uint64_t start = zip_contents(source, member);
  const std::string where = source.path + ": member " + excerpt(member.name);
  const std::string preamble =
      read_text(source, start, std::min(member.size_bytes, npy::kPreambleBytes));
  const std::uint64_t header_bytes = npy::header_bytes(std::as_bytes(std::span(preamble)), where);
  const std::string header = read_text(source, start, std::min(member.size_bytes, header_bytes));
  Layout layout = npy::parse(std::as_bytes(std::span(header)), member.size_bytes, where);
  layout.data_offset_bytes += start;
  layout.checksum = {start, member.size_bytes, member.crc32};
  return layout;
}

std::vector<ArrayMember> members(const ArrayFormat& format, const ArraySource& source,
                                 const std::optional<std::string>& key) {
  std::vector<ZipMember> files = zip_members(source);
  std::erase_if(files, [](const ZipMember& file) { return !is_array(file.name); });
  std::vector<ArrayMember> arrays;
  for (const ZipMember& file : files) {
    if (!is_text(file.name)) {
      throw FormatError(source.path + ": zip archive: expected names in UTF-8, found " +
                        excerpt(file.name));
    }
    ArrayMember& array = arrays.emplace_back();
    array.key = file.name.substr(0, file.name.size() - kMemberSuffix.size());
    if (key && !has_key(format, array.key, *key)) continue;
    try {
      array.layout = layout_of(source, file);
    } catch (const FormatError& error) {
      array.fault = error.what();
    }
  }
  return arrays;
}

constexpr ArrayFormat kEntries[] = {{.word = "npz",
                                     .suffix = ".npz",
                                     .key_suffix = kMemberSuffix,
                                     .matches = matches,
                                     .members = members}};

}  // namespace

extern const std::span<const ArrayFormat> kFormats;  // for the list of registry.cc
constinit const std::span<const ArrayFormat> kFormats = kEntries;

}  // namespace lowtide::npz
