// zip.h - the directory of a zip archive, with zip64. Pure: it reads through the source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/array_format.h"

namespace lowtide {

// A member as the directory at the end of the archive describes it.
struct ZipMember {
  std::string name;                // as stored; not always UTF-8
  std::uint64_t header_bytes = 0;  // where its local header starts
  std::uint64_t next_bytes = 0;    // where the next member, or the directory, starts
  std::uint64_t size_bytes = 0;    // of the contents, as stored
  std::uint64_t unpacked_bytes = 0;
  std::uint32_t crc32 = 0;  // of the unpacked contents
  unsigned method = 0;      // 0: stored
  bool encrypted = false;
};

// All members, in the order of the directory. Throws FormatError for an archive without a directory
// or in several parts, a directory that is not where its record says, members that overlap or reach
// into the directory, a name that occurs twice, and more than kMaxMembers members. Holds the
// directory, at most 64 MiB, and the members.
[[nodiscard]] std::vector<ZipMember> zip_members(const ArraySource& source);

// Where the contents of a member start. Throws FormatError if the local header contradicts the
// directory, and unless the contents are stored as they are.
[[nodiscard]] std::uint64_t zip_contents(const ArraySource& source, const ZipMember& member);

}  // namespace lowtide
