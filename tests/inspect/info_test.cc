#include "lowtide/info.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/npy_file.h"
#include "support/token_files.h"

namespace lowtide::info_test {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string tokens_of(std::size_t count) {
  std::vector<std::uint16_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint16_t>(i * 37 % 50257);
  return little_endian(tokens);
}

TEST(Info, TellsAnArrayByItsHeader) {
  const TempFolder folder;
  const std::string path = folder.write("m.npy", npy_text("<f4", {3, 4}, std::string(48, '\0')));
  const Info found = info(path);
  EXPECT_EQ(found.path, path);
  EXPECT_EQ(found.kind, FileKind::array);
  EXPECT_EQ(found.format, "npy");
  EXPECT_EQ(found.dtype, "float32");
  EXPECT_EQ(found.shape, (Shape{3, 4}));
  EXPECT_EQ(found.bytes, 128u + 48u);
  EXPECT_EQ(found.shards, 1u);
  EXPECT_FALSE(found.documents);
}

TEST(Info, NamesTypesAsNumpyDoes) {
  const TempFolder folder;
  const auto dtype_of = [&](const std::string& descr) {
    return info(folder.write("m.npy", npy_text(descr, {1}, std::string(64, '\0')))).dtype;
  };
  EXPECT_EQ(dtype_of("<i8"), "int64");
  EXPECT_EQ(dtype_of("|u1"), "uint8");
  EXPECT_EQ(dtype_of("<c16"), "complex128");
  EXPECT_EQ(dtype_of("|b1"), "bool");
  EXPECT_EQ(dtype_of(">i2"), ">i2");
  EXPECT_EQ(dtype_of("<M8[ns]"), "<M8[ns]");
}

TEST(Info, TakesOneAxisOfIntegersForAnArrayUnlessTokensAreAskedFor) {
  const TempFolder folder;
  const std::string path = folder.write("t.npy", npy_text("<u2", {8}, tokens_of(8)));
  EXPECT_EQ(info(path).kind, FileKind::array);
  EXPECT_EQ(info(path, {.kind = FileKind::tokens}).kind, FileKind::tokens);
  EXPECT_EQ(info(path, {.kind = FileKind::tokens}).shape, Shape{8});
}

TEST(Info, TakesHeaderlessFilesForTokensByTheirName) {
  const TempFolder folder;
  EXPECT_EQ(info(folder.write("t.bin", tokens_of(10))).format, "nanogpt");
  EXPECT_EQ(info(folder.write("t.npy", tokens_of(10))).format, "olmo");
  EXPECT_EQ(info(folder / "t.bin", {.dtype = "float32"}).kind, FileKind::array);
  EXPECT_EQ(info(folder / "t.bin", {.dtype = "uint16", .shape = Shape{2, 5}}).shape, (Shape{2, 5}));
  EXPECT_THROW((void)info(folder.write("m.f32", tokens_of(10))), FormatError);
  EXPECT_EQ(info(folder / "m.f32", {.dtype = "float32"}).shape, Shape{5});
}

TEST(Info, JoinsAPairAndCountsItsIndex) {
  const TempFolder folder;
  const MegatronIndex index{.lengths = {3, 2}, .pointers = {0, 6}, .boundaries = {0, 1, 2}};
  folder.write("p.idx", index.bytes());
  const std::string data = folder.write("p.bin", tokens_of(5));
  for (const std::string& path : {data, folder / "p.idx", folder / "p"}) {
    const Info found = info(path);
    EXPECT_EQ(found.kind, FileKind::tokens);
    EXPECT_EQ(found.format, "megatron");
    EXPECT_EQ(found.documents, 2u);
    EXPECT_EQ(found.shards, 1u);
    ASSERT_EQ(found.files.size(), 2u);
    EXPECT_EQ(found.files[1].path, folder / "p.idx");
    EXPECT_EQ(found.bytes, 10 + index.bytes().size());
  }
}

TEST(Info, JoinsFoldersPatternsAndLists) {
  const TempFolder folder;
  const std::vector<std::string> paths = {folder.write("d/a.bin", tokens_of(4)),
                                          folder.write("d/b.bin", tokens_of(6))};
  EXPECT_EQ(info(folder / "d").shape, Shape{10});
  EXPECT_EQ(info(folder / "d/*.bin").shape, Shape{10});
  EXPECT_EQ(info(paths).shards, 2u);
}

int forbidden(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = EPERM;
  return -1;
}

TEST(Info, TakesAFolderForAnArrayUnlessItsFilesCouldBeTokens) {
  const TempFolder folder;
  folder.write("0.npy", "");
  folder.write("1.npy", npy_text("<f4", {3, 4}, std::string(48, '\0')));
  folder.write("2.npy", npy_text("<f4", {1, 4}, std::string(16, '\0')));
  EXPECT_EQ(info(folder.path()).kind, FileKind::array);
  EXPECT_EQ(info(folder.path()).shape, (Shape{4, 4}));
  const TempFolder tokens;
  tokens.write("1.npy", npy_text("<u2", {8}, tokens_of(8)));
  EXPECT_EQ(info(tokens.path()).kind, FileKind::tokens);
  const TempFolder headerless;
  headerless.write("1.npy", tokens_of(8));
  EXPECT_EQ(info(headerless.path()).kind, FileKind::tokens);
}

TEST(Info, SaysWhyTheCacheIsUnknown) {
  const TempFolder folder;
  const std::string path = folder.write("t.bin", tokens_of(10));
  EXPECT_TRUE(info(path).cached_unknown.empty() == info(path).cached_bytes.has_value());
  const sys::Fault fault(sys::table.cachestat, &forbidden);
  const Info found = info(path);
  EXPECT_FALSE(found.cached_bytes);
  EXPECT_FALSE(found.files.at(0).cached_bytes);
  EXPECT_NE(found.cached_unknown.find("EPERM"), std::string::npos);
}

TEST(Info, OpensRowsOfAnyLength) {
  const TempFolder folder;
  const std::uint64_t count = std::uint64_t{1} << 32;
  const std::string path = folder.write("m.npy", npy_text("|u1", {1, count}, ""));
  std::filesystem::resize_file(path, 128 + count);  // sparse
  EXPECT_EQ(info(path).shape, (Shape{1, count}));
}

TEST(Info, RefusesWhatContradictsItself) {
  const TempFolder folder;
  const std::string path = folder.write("t.bin", tokens_of(10));
  EXPECT_THROW((void)info(path, {.shape = Shape{10}, .format = "nanogpt"}), std::invalid_argument);
  EXPECT_THROW((void)info(path, {.kind = FileKind::tokens, .shape = Shape{10}}),
               std::invalid_argument);
  EXPECT_THROW((void)info(path, {.kind = FileKind::array, .dtype = "<u2", .format = "llmc"}),
               std::invalid_argument);
  EXPECT_THROW((void)info(path, {.dtype = "<u2", .shape = Shape{10}, .format = "npy"}),
               FormatError);
  EXPECT_THROW((void)info(folder.write("empty.bin", "")), FormatError);
  EXPECT_THROW((void)info(folder / "none"), IoError);
  EXPECT_THROW((void)info(std::vector<std::string>{}), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::info_test
