#include "format/zip.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "core/checked.h"
#include "core/quote.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::string_view kEndMagic = "PK\x05\x06", kEnd64Magic = "PK\x06\x06",
                           kLocatorMagic = "PK\x06\x07", kEntryMagic = "PK\x01\x02",
                           kLocalMagic = "PK\x03\x04";
constexpr std::uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46,
                        kLocalBytes = 30;
constexpr std::uint64_t kMaxCommentBytes = 0xffff;
constexpr std::uint64_t kMaxDirectoryBytes = 64 << 20;
constexpr std::uint64_t kFull16 = 0xffff, kFull32 = 0xffffffff;  // the number is in zip64's fields

struct ZipDirectory {
  std::uint64_t entries = 0;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t end_bytes = 0;  // where the record after it starts
  bool in_parts = false;
};

[[noreturn]] void fail_zip(const ArraySource& source, const std::string& what) {
  throw FormatError(source.path + ": zip archive: " + what);
}

// The record at the very end, which a comment may follow. The comment must reach to the end, so
// that no record inside a comment is taken for it.
std::uint64_t find_end(const ArraySource& source, std::string* record) {
  const std::uint64_t size = std::min(source.file_bytes, kEndBytes + kMaxCommentBytes);
  const std::string tail = read_text(source, source.file_bytes - size, size);
  for (std::size_t at = tail.rfind(kEndMagic); at != std::string::npos;
       at = at == 0 ? std::string::npos : tail.rfind(kEndMagic, at - 1)) {
    if (tail.size() - at < kEndBytes) continue;
    if (little_at(tail, at + 20, 2) != tail.size() - at - kEndBytes) continue;
    *record = tail.substr(at, kEndBytes);
    return source.file_bytes - size + at;
  }
  fail_zip(source, "expected the end record of its directory in the last " + std::to_string(size) +
                       " bytes, found none; the file was probably cut off");
}

// Replaces what the record at the end has no room for.
void read_zip64(const ArraySource& source, std::uint64_t end_bytes, ZipDirectory* directory) {
  if (end_bytes < kLocatorBytes) return;
  const std::string locator = read_text(source, end_bytes - kLocatorBytes, kLocatorBytes);
  if (!locator.starts_with(kLocatorMagic)) return;
  const std::uint64_t at = little_at(locator, 8, 8);
  if (little_at(locator, 4, 4) != 0 || little_at(locator, 16, 4) > 1) directory->in_parts = true;
  if (!fits_inside(at, kEnd64Bytes, end_bytes - kLocatorBytes)) {
    fail_zip(source, "expected the zip64 end record before byte " +
                         std::to_string(end_bytes - kLocatorBytes) + ", found the offset " +
                         std::to_string(at));
  }
  const std::string record = read_text(source, at, kEnd64Bytes);
  if (!record.starts_with(kEnd64Magic)) {
    fail_zip(source, "expected the zip64 end record at byte " + std::to_string(at) + ", found " +
                         excerpt(record.substr(0, 4)));
  }
  directory->in_parts = directory->in_parts || little_at(record, 16, 4) != 0 ||
                        little_at(record, 20, 4) != 0 ||
                        little_at(record, 24, 8) != little_at(record, 32, 8);
  directory->entries = little_at(record, 32, 8);
  directory->size_bytes = little_at(record, 40, 8);
  directory->offset_bytes = little_at(record, 48, 8);
  directory->end_bytes = at;
}

ZipDirectory find_directory(const ArraySource& source) {
  std::string record;
  const std::uint64_t end_bytes = find_end(source, &record);
  ZipDirectory directory{.entries = little_at(record, 10, 2),
                         .offset_bytes = little_at(record, 16, 4),
                         .size_bytes = little_at(record, 12, 4),
                         .end_bytes = end_bytes};
  const auto part_number = [](std::uint64_t number) { return number != 0 && number != kFull16; };
  directory.in_parts = part_number(little_at(record, 4, 2)) ||
                       part_number(little_at(record, 6, 2)) ||
                       little_at(record, 8, 2) != directory.entries;
  read_zip64(source, end_bytes, &directory);
  if (directory.in_parts) fail_zip(source, "expected one file, found a part of several; join them");
  if (directory.entries > kMaxMembers) {
    fail_zip(source, "expected at most " + std::to_string(kMaxMembers) + " members, found " +
                         std::to_string(directory.entries));
  }
  const bool inside =
      fits_inside(directory.offset_bytes, directory.size_bytes, directory.end_bytes) &&
      directory.offset_bytes + directory.size_bytes == directory.end_bytes;
  if (!inside || directory.size_bytes > kMaxDirectoryBytes) {
    fail_zip(source, "expected a directory of at most 64 MiB that ends at byte " +
                         std::to_string(directory.end_bytes) + ", found one of " +
                         std::to_string(directory.size_bytes) + " bytes at byte " +
                         std::to_string(directory.offset_bytes));
  }
  return directory;
}

// The extra field with zip64's numbers, in this order, each only if the entry has no room for it.
void widen(const ArraySource& source, std::string_view extra, ZipMember* member) {
  std::uint64_t* const wide[] = {&member->unpacked_bytes, &member->size_bytes,
                                 &member->header_bytes};
  const bool needed = std::ranges::any_of(wide, [](const auto* n) { return *n == kFull32; });
  while (needed && extra.size() >= 4) {
    const std::uint64_t id = little_at(extra, 0, 2), size = little_at(extra, 2, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) break;
    std::string_view numbers = extra.substr(0, size);
    extra.remove_prefix(size);
    if (id != 1) continue;
    for (std::uint64_t* const number : wide) {
      if (*number != kFull32) continue;
      if (numbers.size() < 8) break;
      *number = little_at(numbers, 0, 8);
      numbers.remove_prefix(8);
    }
    return;
  }
  if (needed) {
    fail_zip(source, "member " + excerpt(member->name) + ": expected its sizes in a zip64 field, " +
                         "found none");
  }
}

std::vector<ZipMember> parse_directory(const ArraySource& source, const ZipDirectory& directory) {
  const std::string text = read_text(source, directory.offset_bytes, directory.size_bytes);
  std::string_view rest = text;
  const auto fail_entry = [&](std::size_t number, const std::string& expected) {
    fail_zip(source, "expected " + expected + " " + std::to_string(number) + " of " +
                         std::to_string(directory.entries) + " at byte " +
                         std::to_string(directory.end_bytes - rest.size()) +
                         " of the file, found " +
                         (rest.empty() ? "the end of the directory" : excerpt(rest.substr(0, 4))));
  };
  std::vector<ZipMember> members;
  for (std::size_t i = 0; i < directory.entries; ++i) {
    if (rest.size() < kEntryBytes || !rest.starts_with(kEntryMagic)) fail_entry(i, "entry");
    const std::uint64_t name = little_at(rest, 28, 2), extra = little_at(rest, 30, 2);
    const std::uint64_t all = kEntryBytes + name + extra + little_at(rest, 32, 2);
    if (rest.size() < all) fail_entry(i, "the end of entry");
    ZipMember member{.name = std::string(rest.substr(kEntryBytes, name)),
                     .header_bytes = little_at(rest, 42, 4),
                     .size_bytes = little_at(rest, 20, 4),
                     .unpacked_bytes = little_at(rest, 24, 4),
                     .crc32 = static_cast<std::uint32_t>(little_at(rest, 16, 4)),
                     .method = static_cast<unsigned>(little_at(rest, 10, 2)),
                     .encrypted = (little_at(rest, 8, 2) & 1) != 0};
    widen(source, rest.substr(kEntryBytes + name, extra), &member);
    members.push_back(std::move(member));
    rest.remove_prefix(all);
  }
  if (!rest.empty()) {
    fail_zip(source, "expected " + std::to_string(directory.entries) +
                         " members in its directory, found " + std::to_string(rest.size()) +
                         " bytes after the last one");
  }
  return members;
}

// The local header has the same name; an extra field of unknown length may follow it.
std::uint64_t least_end(const ZipMember& member) {
  return saturating_add(saturating_add(member.header_bytes, kLocalBytes + member.name.size()),
                        member.size_bytes);
}

void check_places(const ArraySource& source, const ZipDirectory& directory,
                  std::vector<ZipMember>* members) {
  std::unordered_set<std::string_view> names;
  for (const ZipMember& member : *members) {
    if (!names.insert(member.name).second)
      fail_zip(source, "expected each name once, found " + excerpt(member.name) + " twice");
  }
  std::vector<ZipMember*> by_place;
  for (ZipMember& member : *members) by_place.push_back(&member);
  std::ranges::sort(by_place, {}, &ZipMember::header_bytes);
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    ZipMember& member = *by_place[i];
    const bool last = i + 1 == by_place.size();
    member.next_bytes = last ? directory.offset_bytes : by_place[i + 1]->header_bytes;
    if (least_end(member) <= member.next_bytes) continue;
    fail_zip(source, "member " + excerpt(member.name) + ": expected its end at byte " +
                         std::to_string(member.next_bytes) + " or before, where " +
                         (last ? "the directory" : "member " + excerpt(by_place[i + 1]->name)) +
                         " starts, found byte " + std::to_string(least_end(member)) +
                         (last ? "" : " (they overlap)"));
  }
}

}  // namespace

std::vector<ZipMember> zip_members(const ArraySource& source) {
  const ZipDirectory directory = find_directory(source);
  std::vector<ZipMember> members = parse_directory(source, directory);
  check_places(source, directory, &members);
  return members;
}

std::uint64_t zip_contents(const ArraySource& source, const ZipMember& member) {
  const std::string where = "member " + excerpt(member.name) + ": ";
  if (member.encrypted) fail_zip(source, where + "expected plain contents, found encrypted ones");
  if (member.method != 0) {
    constexpr unsigned kDeflate = 8;
    const std::string how =
        member.method == kDeflate ? "deflate" : "method " + std::to_string(member.method);
    fail_zip(source, where + "expected stored contents, found compressed ones (" + how +
                         "), which cannot be read in place; write the file with np.savez instead " +
                         "of np.savez_compressed");
  }
  const std::string header =
      read_text(source, member.header_bytes, kLocalBytes + member.name.size());
  if (!header.starts_with(kLocalMagic)) {
    fail_zip(source, where + "expected its header at byte " + std::to_string(member.header_bytes) +
                         ", found " + excerpt(header.substr(0, 4)));
  }
  const std::uint64_t name_bytes = little_at(header, 26, 2);
  if (name_bytes != member.name.size() || header.substr(kLocalBytes) != member.name) {
    fail_zip(source, where + "expected the same name in its header at byte " +
                         std::to_string(member.header_bytes) + ", found " +
                         excerpt(header.substr(kLocalBytes)));
  }
  if (little_at(header, 8, 2) != 0 || (little_at(header, 6, 2) & 1) != 0) {
    fail_zip(source, where +
                         "expected stored contents, as in the directory, found another method " +
                         "in its header at byte " + std::to_string(member.header_bytes));
  }
  if (member.size_bytes != member.unpacked_bytes) {
    fail_zip(source, where + "expected the same size twice for stored contents, found " +
                         std::to_string(member.size_bytes) + " and " +
                         std::to_string(member.unpacked_bytes));
  }
  const std::uint64_t start =
      member.header_bytes + kLocalBytes + name_bytes + little_at(header, 28, 2);
  if (fits_inside(start, member.size_bytes, member.next_bytes)) return start;
  fail_zip(source, where + "expected its " + std::to_string(member.size_bytes) +
                       " bytes of contents before byte " + std::to_string(member.next_bytes) +
                       ", found that they start at byte " + std::to_string(start));
}

}  // namespace lowtide
