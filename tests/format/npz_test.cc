#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/bytes_file.h"

namespace lowtide::npz_test {
namespace {

constexpr const char* kPath = "m.npz";

// An array of `count` bytes as a .npy file.
std::string npy_of(std::uint64_t count, const std::string& descr = "'|u1'") {
  const std::string header = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (" +
                             std::to_string(count) + ",), }\n";
  return std::string("\x93NUMPY\x01\0", 8) + little(header.size(), 2) + header +
         std::string(count, 'x');
}

// What a member's header and its entry in the directory say. Sizes above 32 bits go into zip64's
// fields.
struct Member {
  std::string name;
  std::string contents;
  unsigned method = 0;
  unsigned flags = 0;
  std::string local_name = name;
  unsigned local_method = method;
  std::string local_extra = {};
  std::uint64_t size_bytes = contents.size();
  std::uint64_t unpacked_bytes = size_bytes;
  std::int64_t moved_bytes = 0;  // added to where the entry says that the header is
  bool zip64 = false;
};

struct Archive {
  std::vector<Member> members;
  std::string comment = {};
  bool zip64 = false;
  unsigned disk = 0;
  std::int64_t more_entries = 0, more_size = 0, more_offset = 0;

  [[nodiscard]] BytesFile file() const {
    std::string bytes, directory;
    for (const Member& m : members) {
      const std::uint64_t at = bytes.size() + static_cast<std::uint64_t>(m.moved_bytes);
      bytes += "PK\x03\x04" + little(20, 2) + little(m.flags, 2) + little(m.local_method, 2) +
               little(0, 8) + little(m.size_bytes, 4) + little(m.unpacked_bytes, 4) +
               little(m.local_name.size(), 2) + little(m.local_extra.size(), 2) + m.local_name +
               m.local_extra + m.contents;
      const std::string wide = little(1, 2) + little(24, 2) + little(m.unpacked_bytes, 8) +
                               little(m.size_bytes, 8) + little(at, 8);
      const std::string extra = little(0x7075, 2) + little(1, 2) + "?" + (m.zip64 ? wide : "");
      directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(m.flags, 2) +
                   little(m.method, 2) + little(0, 8) +
                   little(m.zip64 ? UINT32_MAX : m.size_bytes, 4) +
                   little(m.zip64 ? UINT32_MAX : m.unpacked_bytes, 4) + little(m.name.size(), 2) +
                   little(extra.size(), 2) + little(0, 10) + little(m.zip64 ? UINT32_MAX : at, 4) +
                   m.name + extra;
    }
    const auto plus = [](std::uint64_t number, std::int64_t more) {
      return number + static_cast<std::uint64_t>(more);
    };
    const std::uint64_t entries = plus(members.size(), more_entries);
    const std::uint64_t size = plus(directory.size(), more_size);
    const std::uint64_t offset = plus(bytes.size(), more_offset);
    bytes += directory;
    if (zip64) {
      const std::uint64_t record = bytes.size();
      bytes += "PK\x06\x06" + little(44, 8) + little(45, 4) + little(disk, 4) + little(0, 4) +
               little(entries, 8) + little(entries, 8) + little(size, 8) + little(offset, 8);
      bytes += "PK\x06\x07" + little(0, 4) + little(record, 8) + little(1, 4);
    }
    const auto narrow = [&](std::uint64_t number, std::size_t count) {
      return little(zip64 ? UINT64_MAX : number, count);
    };
    bytes += "PK\x05\x06" + little(zip64 ? 0 : disk, 2) + little(0, 2) + narrow(entries, 2) +
             narrow(entries, 2) + narrow(size, 4) + narrow(offset, 4) + little(comment.size(), 2) +
             comment;
    return {kPath, bytes};
  }
};

Archive two() {
  return {.members = {{.name = "a.npy", .contents = npy_of(10)},
                      {.name = "b.npy", .contents = npy_of(20)}}};
}

bool says(const std::string& text, const std::string& part) {
  return text.starts_with(std::string(kPath) + ": ") && text.find(part) != std::string::npos;
}

// Of an archive that is like two(), but for one change.
std::string error_after(const std::function<void(Archive&)>& change,
                        const std::optional<std::string>& key = "a") {
  Archive archive = two();
  change(archive);
  return archive.file().error(key);
}

TEST(Npz, AKeyNamesAMemberWithOrWithoutItsSuffix) {
  const BytesFile file = two().file();
  for (const char* const key : {"b", "b.npy"}) {
    const Layout layout = file.open(key);
    EXPECT_EQ(layout.format, "npz");
    EXPECT_EQ(layout.shape, std::vector<std::uint64_t>{20});
    EXPECT_EQ(file.bytes.substr(layout.data_offset_bytes, 20), std::string(20, 'x'));
    EXPECT_EQ(file.bytes[layout.data_offset_bytes - 1], '\n');
  }
  EXPECT_TRUE(says(file.error(), "expected a key, because the file contains 2 arrays: 'a', 'b'"));
  EXPECT_TRUE(says(file.error("c"), "expected one of the keys 'a', 'b', found the key 'c'"));
}

TEST(Npz, TheWholeNameOfAMemberWinsAsInNumPy) {
  Archive archive = two();
  archive.members[1].name = archive.members[1].local_name = "a.npy.npy";
  EXPECT_EQ(archive.file().open("a").data_bytes, 10u);
  EXPECT_EQ(archive.file().open("a.npy").data_bytes, 10u);
  EXPECT_EQ(archive.file().open("a.npy.npy").data_bytes, 20u);
}

TEST(Npz, IsKnownByItsFirstMemberWhateverItsName) {
  BytesFile file = two().file();
  file.path = "m.bin";
  EXPECT_EQ(file.open("a").format, "npz");
  Archive other = two();
  other.members[0].name = other.members[0].local_name = "a.txt";
  file = other.file();
  EXPECT_EQ(file.open().data_bytes, 20u) << "the only array in it";
  file.path = "m.zip";
  EXPECT_NE(file.error().find("found a zip archive"), std::string::npos) << file.error();
}

TEST(Npz, TheDataBeginsAfterTheExtraFieldOfTheLocalHeader) {
  Archive archive = two();
  archive.members[0].local_extra = std::string(100, 'e');
  const BytesFile file = archive.file();
  const Layout layout = file.open("a");
  EXPECT_EQ(file.bytes.substr(layout.data_offset_bytes, 10), std::string(10, 'x'));
  EXPECT_EQ(file.bytes[layout.data_offset_bytes - 1], '\n');
}

TEST(Npz, Zip64AndCommentsAreRead) {
  Archive archive = two();
  archive.zip64 = true;
  archive.comment =
      "PK\x05\x06 is not an end record here, because no comment of it reaches the end";
  for (Member& member : archive.members) member.zip64 = true;
  EXPECT_EQ(archive.file().open("b").data_bytes, 20u);
  EXPECT_EQ(archive.file().members().size(), 2u);
}

TEST(Npz, ACompressedMemberIsAFaultOfItsOwn) {
  const auto compress = [](Archive& archive) {
    archive.members[0].method = archive.members[0].local_method = 8;
  };
  EXPECT_TRUE(says(error_after(compress),
                   "member 'a.npy': expected stored contents, found compressed ones (deflate), "
                   "which cannot be read in place; write the file with np.savez instead of "
                   "np.savez_compressed"));
  EXPECT_EQ(error_after(compress, "b"), "no error, but npz");
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0].method = 93; }), "(method 93)"));
  EXPECT_TRUE(
      says(error_after([](Archive& a) { a.members[0].flags = 1; }), "found encrypted ones"));
  Archive archive = two();
  compress(archive);
  EXPECT_TRUE(says(archive.file().members()[0].fault, "np.savez instead"));
  EXPECT_EQ(archive.file().members()[1].fault, "");
}

TEST(Npz, ABrokenArrayIsAFaultOfItsOwn) {
  const auto object = [](Archive& a) { a.members[0] = {"a.npy", npy_of(1, "'|O'")}; };
  EXPECT_TRUE(says(error_after(object), "member 'a.npy': .npy header: dtype '|O' holds Python"));
  EXPECT_EQ(error_after(object, "b"), "no error, but npz");
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0] = {"a.npy", "not an array"}; }),
                   "expected the .npy magic"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0] = {"a.npy", ""}; }), "expected"));
  const std::string half = npy_of(100).substr(0, 100);
  EXPECT_TRUE(says(error_after([&](Archive& a) { a.members[0] = {"a.npy", half}; }),
                   "member 'a.npy': expected 100 bytes of data"));
}

TEST(Npz, RefusesMembersThatOverlap) {
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0].size_bytes += 1000; }),
                   "member 'a.npy': expected its end at byte "));
  EXPECT_TRUE(
      says(error_after([](Archive& a) { a.members[0].size_bytes += 10; }), "(they overlap)"));
  EXPECT_TRUE(
      says(error_after([](Archive& a) { a.members[1].moved_bytes = -10; }), "(they overlap)"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[1].size_bytes += 1; }),
                   "where the directory starts"));
  // Two entries of the same member.
  EXPECT_TRUE(says(error_after([](Archive& a) {
                     a.members[1] = a.members[0];
                     a.members[1].name = "c.npy";
                     a.members[1].moved_bytes =
                         -static_cast<std::int64_t>(30 + 5 + a.members[0].contents.size());
                   }),
                   "(they overlap)"));
  // The extra field of the local header pushes the contents into the next member.
  EXPECT_TRUE(says(error_after([](Archive& a) {
                     a.members[0].local_extra = std::string(50, 'e');
                     a.members[0].contents.resize(a.members[0].contents.size() - 50);
                     a.members[0].zip64 = false;
                   }),
                   "bytes of contents before byte "));
}

TEST(Npz, RefusesLyingSizesAndPlaces) {
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0].unpacked_bytes += 1; }),
                   "expected the same size twice for stored contents"));
  EXPECT_TRUE(says(error_after([](Archive& a) {
                     a.members[0].zip64 = true;
                     a.members[0].size_bytes = UINT64_MAX - 20;
                   }),
                   "expected its end at byte "));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[1].moved_bytes = 3; }, "b"), "expected"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[1].moved_bytes = 1 << 30; }, "b"),
                   "where the directory starts"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0].local_name = "A.npy"; }),
                   "expected the same name in its header at byte 0, found 'A.npy'"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[0].local_method = 8; }),
                   "expected stored contents, as in the directory"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.more_entries = 1; }), "expected entry 2 of 3"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.more_entries = -1; }),
                   "expected 1 members in its directory"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.more_size = 1; }), "expected a directory"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.more_offset = -1; }), "expected a directory"));
  EXPECT_TRUE(
      says(error_after([](Archive& a) { a.more_offset = 1 << 30; }), "expected a directory"));
  EXPECT_TRUE(says(error_after([](Archive& a) {
                     a.zip64 = true;
                     a.more_entries = std::int64_t{1} << 60;
                   }),
                   "expected at most 262144 members"));
  EXPECT_TRUE(says(error_after([](Archive& a) {
                     a.zip64 = true;
                     a.more_offset = -1;
                     a.more_size = 1;
                   }),
                   "expected entry 0 of 2"));
}

TEST(Npz, RefusesArchivesInParts) {
  EXPECT_TRUE(says(error_after([](Archive& a) { a.disk = 1; }), "found a part of several"));
  EXPECT_TRUE(says(error_after([](Archive& a) {
                     a.disk = 1;
                     a.zip64 = true;
                   }),
                   "found a part of several"));
}

TEST(Npz, RefusesNamesThatAreNotUnique) {
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[1].name = "a.npy"; }),
                   "expected each name once, found 'a.npy' twice"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[1].name = "\xff.npy"; }),
                   "expected names in UTF-8"));
  EXPECT_TRUE(says(error_after([](Archive& a) { a.members[1].name = std::string("\0.npy", 5); }),
                   "expected names in UTF-8"));
}

TEST(Npz, EveryTruncationIsAnError) {
  const BytesFile whole = two().file();
  for (std::size_t size = 1; size < whole.bytes.size(); ++size) {
    const BytesFile cut{kPath, whole.bytes.substr(0, size)};
    EXPECT_TRUE(says(cut.error("a"), "expected the end record of its directory")) << size;
  }
}

TEST(Npz, EveryChangedByteIsReadOrRefusedAndNeverLeadsOutOfTheFile) {
  const BytesFile whole = two().file();
  for (std::size_t at = 0; at < whole.bytes.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      BytesFile changed = whole;
      changed.bytes[at] = static_cast<char>(changed.bytes[at] ^ flip);
      try {
        const Layout layout = changed.open("a");
        EXPECT_LE(layout.data_offset_bytes + layout.data_bytes, changed.bytes.size());
      } catch (const FormatError&) {
      }
    }
  }
}

}  // namespace
}  // namespace lowtide::npz_test
