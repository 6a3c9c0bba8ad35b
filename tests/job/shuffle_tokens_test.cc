#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "job/shuffled.h"
#include "lowtide/jobs.h"
#include "lowtide/token_writer.h"
#include "support/thrown.h"

namespace lowtide::shuffle_tokens_test {
namespace {

using Documents = std::vector<std::vector<std::uint16_t>>;

Documents some_documents(std::size_t count) {
  Documents documents(count);
  for (std::size_t i = 0; i < count; ++i) {
    documents[i].resize(i * 31 % 700);
    for (std::size_t k = 0; k < documents[i].size(); ++k)
      documents[i][k] = static_cast<std::uint16_t>(i * 17 + k);
  }
  return documents;
}

void write(const std::string& path, const std::string& format, const Documents& documents) {
  TokenWriter writer = TokenWriter::create(path, {.format = format, .dtype = "uint16"});
  for (const auto& document : documents) writer.append(document);
  writer.close();
}

Documents documents_in(const std::string& path) {
  const Tokens tokens = Tokens::open(path);
  std::vector<std::int64_t> starts(tokens.documents().value() + 1);
  tokens.document_offsets(0, starts);
  Documents documents;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    documents.emplace_back(starts[i + 1] - starts[i]);
    tokens.read(static_cast<std::uint64_t>(starts[i]), documents.back().size(),
                std::as_writable_bytes(std::span(documents.back())));
  }
  return documents;
}

TEST(ShuffleTokens, GivesDocumentsInTheFormatOfTheSource) {
  const Documents documents = some_documents(8000);
  Documents expected;
  for (const std::uint64_t i : shuffled_units(documents.size(), 9))
    expected.push_back(documents[i]);
  for (const auto& [format, suffix] :
       {std::pair<std::string, std::string>{"megatron", ".bin"}, {"datatrove", ".ds"}}) {
    SCOPED_TRACE(format);
    const TempFolder folder;
    write(folder / ("a" + suffix), format, documents);
    const JobSource source{.paths = {folder / ("a" + suffix)}, .tokens = true};
    plan_shuffle(source, folder / ("b" + suffix),
                 {.unit = Unit::document, .seed = 9, .memory_bytes = 3 << 20})
        .run();
    EXPECT_TRUE(documents_in(folder / ("b" + suffix)) == expected);
    write(folder / ("e" + suffix), format, expected);
    EXPECT_TRUE(file_text(folder / ("b" + suffix)) == file_text(folder / ("e" + suffix)));
    plan_shuffle(source, folder / "parts",
                 {.unit = Unit::document, .seed = 9, .shards = 4, .memory_bytes = 3 << 20})
        .run();
    EXPECT_EQ(names_in(folder / "parts").size(), 8u);
    EXPECT_TRUE(documents_in(folder / "parts") == expected);
  }
}

// The documents of a stream that only a token separates: found when the plan is made.
TEST(ShuffleTokens, FindsDocumentsByTheTokenBetweenThem) {
  constexpr std::uint16_t kEot = 9;
  for (const auto& [format, begins] :
       {std::pair<std::string, bool>{"nanogpt", false}, {"llmc", true}}) {
    SCOPED_TRACE(format);
    const TempFolder folder;
    Documents documents = some_documents(9000);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      for (std::uint16_t& id : documents[i]) id = static_cast<std::uint16_t>(id | 16);
      documents[i].insert(begins ? documents[i].begin() : documents[i].end(), kEot);
    }
    // What is before the first mark, or after the last one, is a document, too.
    std::vector<std::uint16_t>& bare = begins ? documents.front() : documents.back();
    bare.assign(5000, 16);
    write(folder / "a.bin", format, documents);
    const JobSource source{.paths = {folder / "a.bin"},
                           .tokens = true,
                           .token_options = {.format = format, .eot = kEot}};
    Documents expected;
    for (const std::uint64_t i : shuffled_units(documents.size(), 9))
      expected.push_back(documents[i]);
    write(folder / "e.bin", format, expected);
    const ShuffleOptions options{.unit = Unit::document, .seed = 9, .memory_bytes = 3 << 20};
    const Plan plan = plan_shuffle(source, folder / "b.bin", options);
    EXPECT_GT(plan.tasks(0), 1U);
    EXPECT_LT(plan.text().size(), 4096U);
    Plan::from_text(plan.text()).run();
    EXPECT_TRUE(file_text(folder / "b.bin") == file_text(folder / "e.bin"));
    EXPECT_NE(thrown<std::invalid_argument>([&] {
                (void)plan_shuffle({.paths = {folder / "a.bin"}, .tokens = true}, folder / "c.bin",
                                   options);
              }).find("give eot"),
              std::string::npos);
  }
}

TEST(ShuffleTokens, GivesWindowsAsRows) {
  const TempFolder folder;
  const std::uint64_t tokens = 150'000;
  const std::string data = pattern(tokens * 2);
  folder.write("t1.bin", data.substr(0, 100'001 * 2));
  folder.write("t2.bin", data.substr(100'001 * 2));
  const JobSource source{.paths = {folder / "t?.bin"}, .tokens = true};
  for (const std::uint64_t block : {1ULL, 64ULL, 149'999ULL}) {
    SCOPED_TRACE(block);
    const std::uint64_t windows = (tokens - 1) / block;
    std::string expected;
    for (const std::uint64_t i : shuffled_units(windows, 2))
      expected.append(data, i * block * 2, (block + 1) * 2);
    const std::string to = folder / ("w" + std::to_string(block) + ".npy");
    plan_shuffle(source, to,
                 {.unit = Unit::window, .block_size = block, .seed = 2, .memory_bytes = 4 << 20})
        .run();
    EXPECT_TRUE(array_bytes(to) == expected);
    EXPECT_EQ(Array::open(to).shape(), (std::vector<std::uint64_t>{windows, block + 1}));
    EXPECT_EQ(Array::open(to).dtype().descr(), "'<u2'");
  }
}

TEST(ShuffleTokens, SaysWhichUnitsThereAre) {
  const TempFolder folder;
  folder.write("t.bin", pattern(2000));
  const JobSource source{.paths = {folder / "t.bin"}, .tokens = true};
  const auto said = [&](const JobSource& from, const ShuffleOptions& options) {
    return thrown<std::invalid_argument>(
        [&] { (void)plan_shuffle(from, folder / "o.npy", options); });
  };
  EXPECT_NE(said(source, {.unit = Unit::document}).find("do not record"), std::string::npos);
  EXPECT_NE(said(source, {.unit = Unit::row}).find("no rows"), std::string::npos);
  EXPECT_NE(said(source, {.unit = Unit::window}).find("block_size"), std::string::npos);
  EXPECT_NE(said(source, {.unit = Unit::window, .block_size = 1000}).find("does not fit"),
            std::string::npos);
  EXPECT_NE(said(source, {.unit = Unit::document, .block_size = 8}).find("for windows"),
            std::string::npos);
  folder.write("a.npy", npy_text("|u1", {3}, "abc"));
  EXPECT_NE(said({.paths = {folder / "a.npy"}}, {.unit = Unit::document}).find("has rows"),
            std::string::npos);
}

}  // namespace
}  // namespace lowtide::shuffle_tokens_test
