#include "lowtide/token_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/error.h"
#include "lowtide/tokens.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "support/thrown.h"
#include "writer/faulty_calls.h"

namespace lowtide::token_writer_test {
namespace {

using Names = std::set<std::string>;
using Document = std::vector<std::int64_t>;

TokenWriter make(const std::string& path, const std::string& format,
                 const std::string& dtype = "uint16", std::uint64_t memory_bytes = 1 << 20) {
  return TokenWriter::create(path,
                             {.format = format, .dtype = dtype, .memory_bytes = memory_bytes});
}

std::string path_for(const TempFolder& folder, std::string_view format) {
  return folder / (format == "olmo" ? "t.npy" : format == "datatrove" ? "t.ds" : "t.bin");
}

void write_all(const std::string& path, std::string_view format,
               const std::vector<Document>& documents, const std::string& dtype = "uint16") {
  TokenWriter writer = make(path, std::string(format), dtype);
  for (const Document& document : documents) writer.append(document);
  writer.close();
}

std::vector<std::uint16_t> tokens_in(const std::string& path) {
  const Tokens tokens = Tokens::open(path, {.dtype = "uint16"});
  std::vector<std::uint16_t> all(tokens.size());
  tokens.read(0, all.size(), std::as_writable_bytes(std::span(all)));
  return all;
}

std::string refusal(const std::string& path, const std::string& format,
                    const std::string& dtype = "uint16", std::uint64_t memory_bytes = 1 << 20) {
  return thrown([&] { return make(path, format, dtype, memory_bytes).format(); });
}

TEST(TokenWriter, WritesWhatTokensReads) {
  for (const std::string_view format : token_writer_formats()) {
    SCOPED_TRACE(format);
    const TempFolder folder;
    const std::string path = path_for(folder, format);
    std::vector<std::uint16_t> expected;
    std::vector<std::int64_t> offsets{0};
    TokenWriter writer = make(path, std::string(format), "uint16", 300 << 10);
    for (std::size_t length : {5, 0, 1, 100'000, 7, 0}) {
      Document document(length);
      std::iota(document.begin(), document.end(), 17 * static_cast<std::int64_t>(length) % 100);
      for (std::int64_t& id : document) id %= 50'257;
      writer.append(document);
      for (const std::int64_t id : document) expected.push_back(static_cast<std::uint16_t>(id));
      offsets.push_back(static_cast<std::int64_t>(expected.size()));
    }
    EXPECT_EQ(writer.tokens(), expected.size());
    EXPECT_EQ(writer.documents(), 6u);
    EXPECT_FALSE(writer.closed());
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.close();
    writer.close();
    EXPECT_TRUE(writer.closed());
    const Tokens tokens = Tokens::open(path, {.dtype = "uint16"});
    EXPECT_EQ(tokens.format(), format);
    EXPECT_EQ(tokens_in(path), expected);
    if (tokens.documents()) {
      EXPECT_EQ(*tokens.documents(), 6u);
      std::vector<std::int64_t> found(offsets.size());
      tokens.document_offsets(0, found);
      EXPECT_EQ(found, offsets);
    }
    EXPECT_EQ(names_in(folder.path()).size(), writer.paths().size());
  }
}

TEST(TokenWriter, RefusesAnIdThatDoesNotFitAndGoesOn) {
  const TempFolder folder;
  TokenWriter writer = make(folder / "t.bin", "nanogpt");
  writer.append(Document{1, 2});
  EXPECT_EQ(thrown<std::invalid_argument>([&] { writer.append(Document{3, 4, 65536, -1}); }),
            "document 1: id 65536 at token 2 does not fit uint16");
  EXPECT_EQ(thrown<std::invalid_argument>([&] { writer.append(std::vector<std::int8_t>{-7}); }),
            "document 1: id -7 at token 0 does not fit uint16");
  EXPECT_EQ(thrown<std::invalid_argument>(
                [&] { writer.append(std::vector<std::uint64_t>{~std::uint64_t{0}}); }),
            "document 1: id 18446744073709551615 at token 0 does not fit uint16");
  writer.append(std::vector<std::uint32_t>{5});
  writer.close();
  EXPECT_EQ(writer.documents(), 2u);
  EXPECT_EQ(tokens_in(folder / "t.bin"), (std::vector<std::uint16_t>{1, 2, 5}));
}

TEST(TokenWriter, RefusesWrongOptionsBeforeItWrites) {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  EXPECT_NE(refusal(path, "mds").find("format: expected one that can be written"),
            std::string::npos);
  EXPECT_NE(refusal(path, "llmc", "uint8").find("dtype: expected one that llmc files store"),
            std::string::npos);
  const std::string little = refusal(path, "megatron", "uint16", 4096);
  for (const char* part : {"memory: 4 KiB is too small", "the write buffer", "dirty pages",
                           "the write buffer of the index", "use at least 128 KiB"}) {
    EXPECT_NE(little.find(part), std::string::npos) << little;
  }
  EXPECT_NE(refusal(folder / "none/t.bin", "nanogpt").find("create the folder first"),
            std::string::npos);
  EXPECT_NE(refusal(folder.path(), "nanogpt").find("directory"), std::string::npos);
  folder.write("t.idx", "x");
  EXPECT_EQ(refusal(path, "nanogpt"),
            path + ": a reader would take " + (folder / "t.idx") +
                " for the index of this file, but format nanogpt has no index; remove that file, "
                "or choose another name");
  EXPECT_EQ(names_in(folder.path()), Names{"t.idx"});
}

TEST(TokenWriter, NamesWhatItHolds) {
  const TempFolder folder;
  TokenWriter writer = make(folder / "t.bin", "megatron");
  std::uint64_t held_bytes = 0;
  for (const auto& [what, bytes] : writer.memory_claims()) held_bytes += bytes;
  EXPECT_EQ(writer.memory_claims().size(), 4u);
  EXPECT_LE(held_bytes, writer.memory_bytes());
  writer.close();
  EXPECT_TRUE(writer.memory_claims().empty());
}

TEST(TokenWriter, LeavesOldFilesUntilItIsClosed) {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  write_all(path, "megatron", {{1}, {2, 3}});
  {
    TokenWriter lost = make(path, "megatron");
    lost.append(Document{9});
  }
  TokenWriter abandoned = make(path, "megatron");
  abandoned.append(Document{9});
  abandoned.abandon();
  EXPECT_EQ(thrown([&] { abandoned.append(Document{9}); }), path + ": this writer is closed");
  abandoned.close();
  EXPECT_EQ(tokens_in(path), (std::vector<std::uint16_t>{1, 2, 3}));
  write_all(path, "megatron", {{4, 5}});
  EXPECT_EQ(tokens_in(path), (std::vector<std::uint16_t>{4, 5}));
  EXPECT_EQ(Tokens::open(path).documents(), 1u);
  EXPECT_EQ(names_in(folder.path()), (Names{"t.bin", "t.idx"}));
}

TEST(TokenWriter, IsTheOnlyOneOfItsPath) {
  const TempFolder folder;
  TokenWriter writer = make(folder / "t.bin", "megatron");
  EXPECT_EQ(caught<IoError>([&] { (void)make(folder / "t.bin", "megatron"); })->err, EBUSY);
  writer.append(Document{1});
  writer.close();
  EXPECT_EQ(tokens_in(folder / "t.bin"), (std::vector<std::uint16_t>{1}));
}

TEST(TokenWriter, WithoutDocumentsWritesFilesOfNone) {
  const TempFolder folder;
  write_all(folder / "a.bin", "nanogpt", {});
  EXPECT_EQ(file_text(folder / "a.bin"), "");
  write_all(folder / "b.bin", "llmc", {});
  EXPECT_EQ(Tokens::open(folder / "b.bin").size(), 0u);
  write_all(folder / "c.bin", "megatron", {});
  EXPECT_EQ(file_text(folder / "c.idx").size(), 34u + 8);
  write_all(folder / "d.bin", "megatron", {{}, {}});
  EXPECT_EQ(Tokens::open(folder / "d.idx").documents(), 2u);
}

TEST(TokenWriter, KeepsDocumentsOfThreadsWhole) {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  TokenWriter writer = make(path, "megatron", "uint16", 200 << 10);
  std::vector<std::thread> threads;
  for (std::uint16_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&writer, thread] {
      for (std::uint16_t i = 0; i < 500; ++i) {
        std::vector<std::uint16_t> document(1 + i * 7 % 300, thread);
        document[0] = i;
        writer.append(document);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.close();
  EXPECT_EQ(writer.documents(), 2000u);
  const Tokens tokens = Tokens::open(path);
  const std::vector<std::uint16_t> all = tokens_in(path);
  std::vector<std::int64_t> offsets(2001);
  tokens.document_offsets(0, offsets);
  std::vector<int> next(4, 0);
  for (std::size_t d = 0; d < 2000; ++d) {
    const auto first = all.begin() + offsets[d];
    const auto last = all.begin() + offsets[d + 1];
    const int i = *first;
    ASSERT_EQ(last - first, 1 + i * 7 % 300);
    if (last - first == 1) continue;
    const std::uint16_t thread = first[1];
    EXPECT_TRUE(std::all_of(first + 1, last, [&](std::uint16_t id) { return id == thread; }));
    EXPECT_GE(i, next[thread]);  // in the order of each thread
    next[thread] = i + 1;
  }
}

TEST(TokenWriter, BelongsToTheProcessThatMadeIt) {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  TokenWriter writer = make(path, "megatron");
  writer.append(Document{1});
  const std::string expected = path +
                               ": the writer belongs to the process that created it, and this one "
                               "was forked from it; create "
                               "one here, with a path of its own";
  expect_success(start_child([&] {
    writer.abandon();
    const bool refused = thrown([&] { writer.append(Document{2}); }) == expected &&
                         thrown([&] { writer.close(); }) == expected;
    return refused ? 0 : 1;
  }));
  writer.append(Document{3});
  writer.close();
  EXPECT_EQ(tokens_in(path), (std::vector<std::uint16_t>{1, 3}));
}

TEST(TokenWriter, StopsForGoodWhenTheDiskFails) {
  const TempFolder folder;
  const std::string path = folder.write("t.bin", "old");
  TokenWriter writer = make(path, "nanogpt");
  const std::vector<std::uint16_t> large(1 << 20);
  const auto fail = [&](const auto& call) { return caught<IoError>(call).value().err; };
  {
    const sys::Fault fault(
        sys::table.pwrite, +[](int, const void*, std::size_t, off_t) -> ssize_t {
          errno = ENOSPC;
          return -1;
        });
    EXPECT_EQ(fail([&] { writer.append(large); }), ENOSPC);
  }
  EXPECT_EQ(fail([&] { writer.append(Document{1}); }), ENOSPC);
  EXPECT_EQ(fail([&] { writer.close(); }), ENOSPC);
  EXPECT_EQ(writer.documents(), 0u);
  writer.abandon();
  EXPECT_EQ(file_text(path), "old");
  EXPECT_EQ(names_in(folder.path()), Names{"t.bin"});
}

}  // namespace
}  // namespace lowtide::token_writer_test
