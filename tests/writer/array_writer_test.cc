#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/error.h"
#include "lowtide/writer.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "support/npy_file.h"
#include "support/thrown.h"
#include "writer/faulty_calls.h"
#include "writer/written_array.h"

namespace lowtide::array_writer_test {
namespace {

using Names = std::set<std::string>;
using Rows = std::vector<std::int64_t>;

// Rows of three bytes.
CreateOptions triples(std::optional<std::uint64_t> rows = std::nullopt, bool append = false) {
  return {.dtype = "uint8",
          .rows = rows,
          .row_shape = std::vector<std::uint64_t>{3},
          .append = append,
          .memory_bytes = 1 << 20};
}

void append_text(ArrayWriter& writer, const std::string& text) {
  writer.append(text.size() / 3, bytes_of(text));
}

std::string zeros(std::size_t count) {
  return std::string(count, '\0');
}

TEST(ArrayWriter, PublishesAtCloseAndNotBefore) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  ArrayWriter writer = ArrayWriter::create(path, triples());
  append_text(writer, "abcdef");
  EXPECT_EQ(writer.shape(), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(written(path), "(none)");
  writer.close();
  EXPECT_TRUE(writer.closed());
  EXPECT_EQ(written(path), "(2, 3) abcdef");
  EXPECT_EQ(names_in(folder.path()), Names{"a.npy"});
  writer.close();
  EXPECT_EQ(thrown<std::invalid_argument>([&] { append_text(writer, "abc"); }),
            path + ": the writer is closed");
}

TEST(ArrayWriter, WritesRowsAnywhereAndLeavesZerosElsewhere) {
  const TempFolder folder;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(8));
  writer.write(5, 2, bytes_of("fffggg"));
  writer.write(1, 1, bytes_of("bbb"));
  EXPECT_EQ(writer.rows(), 8u);
  EXPECT_EQ(writer.next_row(), 7u);
  append_text(writer, "hhh");
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(8, 3) " + zeros(3) + "bbb" + zeros(9) + "fffggghhh");
}

TEST(ArrayWriter, ScattersRowsAndTheLastOfEqualOnesWins) {
  const TempFolder folder;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(5));
  const Rows rows{4, 0, 2, 0};
  writer.write_rows(std::span(rows), bytes_of("eeeaaacccAAA"));
  writer.write(2, 1, bytes_of("CCC"));
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(5, 3) AAA" + zeros(3) + "CCC" + zeros(3) + "eee");
}

TEST(ArrayWriter, ScattersMoreRowsThanItSortsAtATime) {
  const TempFolder folder;
  constexpr std::uint64_t kRows = 30'000;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(kRows));
  const std::string text = pattern(kRows * 3);
  std::vector<std::uint32_t> rows(kRows);
  std::string expected(text.size(), '\0');
  for (std::uint32_t i = 0; i < kRows; ++i) {
    rows[i] = static_cast<std::uint32_t>(std::uint64_t{i} * 7919 % kRows);
    expected.replace(rows[i] * 3, 3, text.substr(i * 3, 3));
  }
  writer.write_rows(std::span(rows), bytes_of(text));
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(30000, 3) " + expected);
}

TEST(ArrayWriter, WritesFortranOrder) {
  const TempFolder folder;
  CreateOptions options = triples(4);
  options.fortran_order = true;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", options);
  // Rows abc and def, column after column.
  writer.write(0, 2, bytes_of("adbecf"));
  const Rows rows{3, 2};
  writer.write_rows(std::span(rows), bytes_of("jgkhli"));
  EXPECT_THROW(writer.commit(), std::invalid_argument);
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(4, 3) abcdefghijkl");
  EXPECT_TRUE(Array::open(folder / "a.npy").fortran_order());
  options.rows.reset();
  EXPECT_THROW((void)ArrayWriter::create(folder / "b.npy", options), std::invalid_argument);
}

TEST(ArrayWriter, TakesTheRowShapeFromTheFirstRows) {
  const TempFolder folder;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", {.dtype = "uint8"});
  EXPECT_FALSE(writer.has_row_shape());
  EXPECT_THROW(append_text(writer, "abc"), std::invalid_argument);
  writer.set_row_shape({3});
  EXPECT_THROW(writer.set_row_shape({4}), std::invalid_argument);
  append_text(writer, "abc");
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(1, 3) abc");
  ArrayWriter::create(folder / "b.npy", {.dtype = "uint8"}).close();
  EXPECT_EQ(written(folder / "b.npy"), "(0,) ");
}

TEST(ArrayWriter, CommitsWhatWasAppendedUntilNow) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  {
    ArrayWriter writer = ArrayWriter::create(path, triples());
    append_text(writer, "abc");
    writer.commit();
    EXPECT_EQ(written(path), "(1, 3) abc");
    append_text(writer, "defghi");
    EXPECT_EQ(written(path), "(1, 3) abc");
    EXPECT_THROW(writer.write(0, 1, bytes_of("ABC")), std::invalid_argument);
    writer.commit();
    EXPECT_EQ(written(path), "(3, 3) abcdefghi");
    append_text(writer, "jkl");
  }
  EXPECT_EQ(written(path), "(3, 3) abcdefghi");  // the rest was lost with its writer
  EXPECT_EQ(std::filesystem::file_size(path), 128u + 9u);
}

TEST(ArrayWriter, AppendsToAnExistingFile) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  for (const std::string text : {"abc", "defghi", ""}) {
    ArrayWriter writer = ArrayWriter::create(path, triples(std::nullopt, true));
    append_text(writer, text);
    writer.close();
  }
  EXPECT_EQ(written(path), "(3, 3) abcdefghi");
  {
    ArrayWriter writer = ArrayWriter::create(path, {.append = true});  // the file says the rest
    EXPECT_EQ(writer.next_row(), 3u);
    append_text(writer, "xyz");
  }
  EXPECT_EQ(written(path), "(3, 3) abcdefghi");
}

TEST(ArrayWriter, GrowsAKnownShapeAfterACrash) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  {
    ArrayWriter writer = ArrayWriter::create(path, triples(4));
    append_text(writer, "abc");
    writer.commit();
    append_text(writer, "xxx");
  }
  ArrayWriter writer = ArrayWriter::create(path, triples(4, true));
  EXPECT_EQ(writer.next_row(), 1u);
  writer.write(2, 1, bytes_of("ghi"));
  writer.close();
  EXPECT_EQ(written(path), "(4, 3) abc" + zeros(3) + "ghi" + zeros(3));
}

TEST(ArrayWriter, AppendsToAFileOfAnotherToolAsFarAsItsHeaderHasRoom) {
  const TempFolder folder;
  const std::string path = folder.write("a.npy", npy_text("|u1", {2, 3}, "abcdefGARBAGE"));
  {
    ArrayWriter writer = ArrayWriter::create(path, triples(std::nullopt, true));
    append_text(writer, "ghi");
    writer.close();
  }
  EXPECT_EQ(written(path), "(3, 3) abcdefghi");
  const std::string tight = folder.write("b.npy", [] {
    std::string text = "\x93NUMPY";
    const std::string dict = "{'descr':'|u1','fortran_order':False,'shape':(9,)}    ";
    text += '\x01';
    text += '\0';
    text += static_cast<char>(dict.size());
    text += '\0';
    return text + dict + "123456789";
  }());
  ArrayWriter writer = ArrayWriter::create(tight, {.append = true});
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              writer.append(1, bytes_of("x"));
            }).find("room for at most 9 rows"),
            std::string::npos);
}

TEST(ArrayWriter, RefusesToAppendToWhatDiffers) {
  const TempFolder folder;
  const auto refusal = [&](const std::string& path, CreateOptions options) {
    options.append = true;
    return thrown([&] { (void)ArrayWriter::create(path, options); });
  };
  const std::string path = folder.write("a.npy", npy_text("|u1", {2, 3}, "abcdef"));
  EXPECT_EQ(refusal(path, {.dtype = "uint16"}),
            path + ": append: dtype is '<u2', but the file has '|u1'");
  EXPECT_EQ(refusal(path, {.dtype = "uint8", .row_shape = {{4}}}),
            path + ": append: rows have shape (4,), but those of the file have (3,)");
  EXPECT_EQ(refusal(path, {.rows = 1}), path + ": append: the file has 2 rows, more than 1");
  const std::string two =
      folder.write("b.npy", npy_text("|u1", {2}, "ab") + npy_text("|u1", {1}, "c"));
  EXPECT_NE(refusal(two, {}).find("another array follows at byte"), std::string::npos);
  EXPECT_EQ(file_text(two), npy_text("|u1", {2}, "ab") + npy_text("|u1", {1}, "c"));
  const std::string fortran = folder.write("f.npy", npy_text("|u1", {1, 2}, "ab", true));
  EXPECT_NE(refusal(fortran, {}).find("Fortran order"), std::string::npos);
  EXPECT_NE(refusal(folder / "none.npy", {}).find("no such file to append to"), std::string::npos);
  EXPECT_EQ(names_in(folder.path()), (Names{"a.npy", "b.npy", "f.npy"}));
}

TEST(ArrayWriter, NamesWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  EXPECT_EQ(
      thrown<std::invalid_argument>([&] { (void)ArrayWriter::create(folder / "a", triples()); }),
      (folder / "a") + ": create writes .npy files; use the name " + (folder / "a.npy"));
  EXPECT_NE(
      thrown<std::invalid_argument>([&] { (void)ArrayWriter::create(path, {}); }).find("dtype"),
      std::string::npos);
  CreateOptions tiny = triples();
  tiny.memory_bytes = 1000;
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              (void)ArrayWriter::create(path, tiny);
            }).find("memory: 1000 B is too small: 32 KiB for gathered rows"),
            std::string::npos);
  EXPECT_EQ(names_in(folder.path()), Names{});
  ArrayWriter writer = ArrayWriter::create(path, triples(4));
  EXPECT_EQ(thrown<std::out_of_range>([&] { writer.write(3, 2, bytes_of("aaabbb")); }),
            "row 4 is out of bounds for an array of 4 rows");
  const Rows rows{-1};
  EXPECT_EQ(thrown<std::out_of_range>([&] { writer.write_rows(std::span(rows), bytes_of("abc")); }),
            "row -1 is out of bounds for an array of 4 rows");
  EXPECT_EQ(thrown<std::invalid_argument>([&] { writer.write(0, 2, bytes_of("abc")); }),
            path + ": expected 2 rows of 3 bytes, found 3 bytes");
  EXPECT_EQ(caught<IoError>([&] { (void)ArrayWriter::create(path, triples()); })->err, EBUSY);
  EXPECT_THROW((void)ArrayWriter::create(folder / "o.npy", {.dtype = "|O"}), FormatError);
}

TEST(ArrayWriter, IsWrittenByManyThreads) {
  const TempFolder folder;
  constexpr std::uint64_t kRows = 40'000;
  const std::string text = pattern(kRows * 3);
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(kRows));
  ArrayWriter grown = ArrayWriter::create(folder / "b.npy", triples());
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 12; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t row = thread * 10; row < kRows; row += 120) {
        const std::uint64_t count = std::min<std::uint64_t>(10, kRows - row);
        writer.write(row, count, bytes_of(text).subspan(row * 3, count * 3));
        grown.append(1, bytes_of(text).subspan(row * 3, 3));
      }
    });
  }
  grown.commit();
  for (std::thread& thread : threads) thread.join();
  writer.close();
  grown.close();
  EXPECT_EQ(written(folder / "a.npy"), "(40000, 3) " + text);
  EXPECT_EQ(Array::open(folder / "b.npy").rows(), kRows / 10);
}

TEST(ArrayWriter, GathersSmallRowsAndCountsThem) {
  const TempFolder folder;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples());
  const std::string text = pattern(300'000);
  for (std::size_t at = 0; at < text.size(); at += 3) append_text(writer, text.substr(at, 3));
  writer.close();
  const WriteStats stats = writer.stats();
  EXPECT_EQ(stats.bytes_given, text.size());
  EXPECT_EQ(stats.bytes_written, text.size());
  EXPECT_LE(stats.writes, 1 + text.size() / (32 << 10));
  EXPECT_TRUE(stats.memory_claims.empty());
  EXPECT_EQ(written(folder / "a.npy"), "(100000, 3) " + text);
}

}  // namespace
}  // namespace lowtide::array_writer_test
