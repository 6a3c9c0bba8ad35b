#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "lowtide/info.h"
#include "os/temp_folder.h"
#include "support/npy_file.h"
#include "support/thrown.h"
#include "support/token_files.h"

namespace lowtide::check_test {
namespace {

std::string fault_of(const std::string& path, const CheckOptions& options = {}) {
  return thrown<FormatError>([&] { (void)check(path, options); });
}

template <typename Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string out(numbers.size() * sizeof(Number), '\0');
  std::memcpy(out.data(), numbers.data(), out.size());
  return out;
}

TEST(CheckTokens, NamesFileAndByteOfATokenOutsideTheVocabulary) {
  const TempFolder folder;
  std::vector<std::uint16_t> tokens(3'000'000, 7);  // more than one piece
  folder.write("d/a.bin", little_endian(tokens));
  tokens[2'500'000] = 50257;
  const std::string second = folder.write("d/b.bin", little_endian(tokens));
  EXPECT_EQ(check(folder / "d").highest_token, 50257u);
  EXPECT_EQ(check(folder / "d", {.vocab = 50258}).read_bytes, 12'000'000u);
  EXPECT_EQ(fault_of(folder / "d", {.vocab = 50257}),
            second +
                ": token 5500000 at byte 5000000: expected 0 or more and below vocab 50257, "
                "found 50257");
}

TEST(CheckTokens, RefusesNegativeTokensWhereAVocabularyIsGiven) {
  const TempFolder folder;
  const std::string path =
      folder.write("t.bin", little_endian(std::vector<std::int32_t>{5, -1, 9}));
  const InfoOptions file{.dtype = "int32"};
  EXPECT_EQ(check(path, {.file = file}).highest_token, 9u);
  EXPECT_NE(fault_of(path, {.file = file, .vocab = 10}).find("token 1 at byte 4"),
            std::string::npos);
}

TEST(CheckTokens, FindsADocumentThatDoesNotEndWithItsMark) {
  const TempFolder folder;
  const MegatronIndex index{
      .lengths = {3, 0, 2}, .pointers = {0, 6, 6}, .boundaries = {0, 1, 2, 3}};
  folder.write("p.idx", index.bytes());
  const std::string path =
      folder.write("p.bin", little_endian(std::vector<std::uint16_t>{1, 2, 0, 3, 0}));
  EXPECT_EQ(check(path, {.eot = 0}).info.documents, 3u);
  folder.write("p.bin", little_endian(std::vector<std::uint16_t>{1, 2, 0, 0, 4}));
  EXPECT_EQ(fault_of(path, {.eot = 0}),
            path + ": token 4 at byte 8: expected eot 0 where a document ends, found 4");
}

TEST(CheckTokens, FindsTheMarkOfFilesWithoutAnIndexAtTheirEnd) {
  const TempFolder folder;
  const std::string path =
      folder.write("t.bin", little_endian(std::vector<std::uint16_t>{9, 1, 9}));
  EXPECT_EQ(fault_of(path, {.eot = 9}), "no error");
  EXPECT_NE(fault_of(path, {.eot = 1}).find("token 2 at byte 4"), std::string::npos);
}

TEST(CheckTokens, NotesBytesThatNoSequenceUses) {
  const TempFolder folder;
  const MegatronIndex index{.lengths = {3}, .pointers = {0}, .boundaries = {0, 1}};
  folder.write("p.idx", index.bytes());
  const std::string path = folder.write("p.bin", std::string(10, '\0'));
  ASSERT_EQ(check(path).notes.size(), 1u);
  EXPECT_EQ(check(path).notes.front(),
            "4 bytes of the data are not covered by any sequence of the index");
}

TEST(CheckArray, CountsWhatIsNoNumber) {
  const TempFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::string path = folder.write(
      "m.npy", npy_text("<f4", {2, 3}, bytes_of<float>({1, nan, inf, -inf, -nan, 3.4e38f})));
  const CheckResult result = check(path, {.count_nan = true});
  EXPECT_EQ(result.nan, 2u);
  EXPECT_EQ(result.infinite, 2u);
  EXPECT_EQ(result.read_bytes, 24u);
  EXPECT_FALSE(check(path).nan);

  const std::string half = folder.write(
      "h.npy", npy_text("<f2", {4},
                        little_endian(std::vector<std::uint16_t>{0x7e00, 0x7c00, 0xfc00, 0x7bff})));
  EXPECT_EQ(check(half, {.count_nan = true}).nan, 1u);
  EXPECT_EQ(check(half, {.count_nan = true}).infinite, 2u);
  const std::string big =
      folder.write("b.npy", npy_text(">f8", {1}, std::string("\x7f\xf0\0\0\0\0\0\1", 8)));
  EXPECT_EQ(check(big, {.count_nan = true}).nan, 1u);
  const std::string pair = folder.write("c.npy", npy_text("<c8", {1}, bytes_of<float>({nan, inf})));
  EXPECT_EQ(check(pair, {.count_nan = true}).nan, 1u);
  EXPECT_EQ(check(pair, {.count_nan = true}).infinite, 1u);
}

TEST(CheckArray, ReadsEveryFileOnceWhateverTheOrderAndTheRow) {
  const TempFolder folder;
  const std::string data = pattern(6'000'000);
  std::uint64_t last_done = 0;
  CheckOptions options{.memory_bytes = 4 << 20};
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_GT(done, last_done);
    EXPECT_EQ(all, 6'000'000u);
    last_done = done;
  };
  (void)check(folder.write("f.npy", npy_text("|u1", {1000, 6000}, data, true)), options);
  EXPECT_EQ(last_done, 6'000'000u);
  last_done = 0;
  (void)check(folder.write("c.npy", npy_text("|u1", {1, 6'000'000}, data)), options);
  EXPECT_EQ(last_done, 6'000'000u);
}

TEST(CheckArray, ReadsSeveralRawFilesAsTheyWereDescribed) {
  const TempFolder folder;
  const std::vector<std::string> paths = {folder.write("a.f32", std::string(80, '\0')),
                                          folder.write("b.f32", std::string(40, '\0'))};
  CheckOptions options;
  options.file.dtype = "float32";
  options.file.shape = std::vector<std::uint64_t>{6, 5};
  EXPECT_EQ(check(paths, options).read_bytes, 120u);
}

TEST(CheckArray, FindsTruthValuesThatAreNone) {
  const TempFolder folder;
  const std::string path = folder.write("b.npy", npy_text("|b1", {4}, std::string("\0\1\2\1", 4)));
  EXPECT_EQ(fault_of(path), path + ": element 2: expected 0 or 1 for dtype bool, found 2");
}

TEST(Check, FindsAFileThatWasCut) {
  const TempFolder folder;
  EXPECT_NE(fault_of(folder.write("m.npy", npy_text("<f4", {100}, std::string(399, '\0')))),
            "no error");
  EXPECT_NE(fault_of(folder.write("t.bin", std::string(7, '\1'))), "no error");
}

TEST(Check, FindsAFileThatShrinksWhileItIsRead) {
  const TempFolder folder;
  const std::string path = folder.write("t.bin", std::string(16 << 20, '\1'));
  CheckOptions options{.memory_bytes = 4 << 20};
  options.progress = [&](std::uint64_t, std::uint64_t) {
    std::filesystem::resize_file(path, 5 << 20);
  };
  EXPECT_NE(fault_of(path, options), "no error");
}

TEST(Check, RefusesWhatDoesNotApply) {
  const TempFolder folder;
  const std::string tokens = folder.write("t.bin", std::string(8, '\1'));
  const std::string array = folder.write("m.npy", npy_text("<i4", {2}, std::string(8, '\0')));
  EXPECT_THROW((void)check(tokens, {.count_nan = true}), std::invalid_argument);
  EXPECT_THROW((void)check(array, {.count_nan = true}), std::invalid_argument);
  EXPECT_THROW((void)check(array, {.vocab = 5}), std::invalid_argument);
  EXPECT_THROW((void)check(folder / "none"), IoError);
}

}  // namespace
}  // namespace lowtide::check_test
