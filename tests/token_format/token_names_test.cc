#include "token_format/token_names.h"

#include <gtest/gtest.h>

#include "lowtide/error.h"
#include "support/thrown.h"
#include "token_format/token_source.h"

namespace lowtide::token_names_test {
namespace {

using Names = std::vector<std::string>;

std::string error_in(const Names& names) {
  return thrown<FormatError>([&] { (void)token_files_in("f", names); });
}

TEST(TokenNames, OfAFolderAreThoseOfOneSuffixInTheirOrder) {
  EXPECT_EQ(token_files_in("f", {"b.bin", "a.bin", "a.idx", "notes", ".bin"}),
            (Names{"f/b.bin", "f/a.bin"}));
  EXPECT_EQ(token_files_in("f", {"0.npy", "1.npy"}), (Names{"f/0.npy", "f/1.npy"}));
  EXPECT_EQ(error_in({"a.txt", ".npy"}),
            "f: this folder contains no token files (.bin, .npy, .mds or .ds)");
  EXPECT_EQ(error_in({"a.npy", "b.bin"}),
            "f: this folder contains both .bin and .npy files; name the files of one format, for "
            "example \"f/*.bin\"");
  EXPECT_EQ(token_files_in("f", {"a.bin", "b.npy", "index.json"}), (Names{"f/index.json"}));
}

TEST(TokenNames, OfAListHaveNoIndexBesideItsData) {
  EXPECT_EQ(without_indexes({"a.bin", "a.idx", "b.idx", "c.bin"}),
            (Names{"a.bin", "b.idx", "c.bin"}));
  EXPECT_EQ(without_indexes({"a.ds", "a.ds.index", "a.ds.metadata"}),
            (Names{"a.ds", "a.ds.metadata"}));
  EXPECT_EQ(without_indexes({"a.idx", ".idx", ".bin"}), (Names{"a.idx", ".idx", ".bin"}));
  EXPECT_EQ(without_indexes({"a/index.json", "a/x.mds", "b/index.json"}),
            (Names{"a/x.mds", "b/index.json"}));
  EXPECT_EQ(without_indexes({"index.json", "x.mds", "a/x.mds"}), (Names{"x.mds", "a/x.mds"}));
  EXPECT_TRUE(without_indexes({}).empty());
}

TEST(TokenNames, GoFromAPrefixAndADataFileToTheIndex) {
  EXPECT_EQ(paths_of_prefix("a/text_document"),
            (Names{"a/text_document.idx", "a/text_document.ds.index"}));
  EXPECT_EQ(index_beside("a/x.bin"), "a/x.idx");
  EXPECT_EQ(index_beside("a/x.ds"), "a/x.ds.index");
  EXPECT_EQ(index_beside("a/x.npy"), std::nullopt);
  EXPECT_EQ(index_beside(".bin"), std::nullopt);
}

TEST(TokenFormats, SayWhatIsNeededToFindThem) {
  Names words;
  for (const TokenFormat* const format : token_formats()) {
    const std::string word(format->word);
    EXPECT_TRUE(format->suffix.starts_with('.')) << word;
    EXPECT_TRUE(format->index_suffix.empty() || format->index_suffix.starts_with('.')) << word;
    EXPECT_EQ(std::ranges::count(words, word), 0) << word;
    words.push_back(word);
  }
  const TokenFile file{"f", 0, [](std::uint64_t, std::span<std::byte>) {}};
  const OpenBeside nothing = [](const std::string&) { return std::nullopt; };
  EXPECT_TRUE(token_formats().back()->matches({file, {}, nothing, {}})) << "any file has a format";
}

}  // namespace
}  // namespace lowtide::token_names_test
