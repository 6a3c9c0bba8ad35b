// convert and merge.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "job/shuffled.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "lowtide/jobs.h"
#include "lowtide/token_writer.h"
#include "support/thrown.h"
#include "support/token_files.h"

namespace lowtide::copy_test {
namespace {

using Documents = std::vector<std::vector<std::uint32_t>>;

const Documents kDocuments{{1, 2, 3}, {}, {4}, {5, 6, 7, 8, 9}};
constexpr std::uint64_t kMemory = 1 << 20;

void write(const std::string& path, const std::string& format, const Documents& documents,
           const std::string& dtype = "uint16") {
  TokenWriter writer = TokenWriter::create(path, {.format = format, .dtype = dtype});
  for (const auto& document : documents) writer.append(document);
  writer.close();
}

void convert(const JobSource& source, const std::string& to, const std::string& format,
             std::optional<std::string> dtype = std::nullopt) {
  plan_convert(source, to, {.format = format, .dtype = std::move(dtype), .memory_bytes = kMemory})
      .run();
}

struct Format {
  std::string word, suffix;
};
const std::vector<Format> kFormats{{"nanogpt", ".bin"},
                                   {"llmc", ".bin"},
                                   {"megatron", ".bin"},
                                   {"olmo", ".npy"},
                                   {"datatrove", ".ds"}};

// Every pair of formats gives the bytes that the writer gives for the same documents, as far as
// the source records them.
TEST(Convert, GivesTheFileThatTheWriterWouldHaveMade) {
  for (const Format& from : kFormats) {
    for (const Format& to : kFormats) {
      SCOPED_TRACE(from.word + " to " + to.word);
      const TempFolder folder;
      write(folder / ("a" + from.suffix), from.word, kDocuments);
      const JobSource source{.paths = {folder / ("a" + from.suffix)}, .tokens = true};
      convert(source, folder / ("b" + to.suffix), to.word);
      const bool recorded = Tokens::open(source.paths[0]).documents().has_value();
      write(folder / ("e" + to.suffix), to.word,
            recorded ? kDocuments : Documents{{1, 2, 3, 4, 5, 6, 7, 8, 9}});
      EXPECT_EQ(file_text(folder / ("b" + to.suffix)), file_text(folder / ("e" + to.suffix)));
      for (const std::string index : {".idx", ".ds.index"})
        EXPECT_EQ(file_text(folder / ("b" + index)), file_text(folder / ("e" + index)));
    }
  }
}

TEST(Convert, CutsTheStreamAtTheGivenToken) {
  const TempFolder folder;
  write(folder / "a.bin", "nanogpt", {{1, 2, 50, 50, 3, 50, 4}});
  const JobSource source{.paths = {folder / "a.bin"}, .tokens = true, .token_options = {.eot = 50}};
  convert(source, folder / "b.bin", "megatron");
  write(folder / "e.bin", "megatron", {{1, 2, 50}, {50}, {3, 50}, {4}});
  EXPECT_EQ(file_text(folder / "b.idx"), file_text(folder / "e.idx"));

  write(folder / "l.bin", "llmc", {{50, 1, 2, 50, 3}});  // here it begins a document
  convert({.paths = {folder / "l.bin"}, .tokens = true, .token_options = {.eot = 50}},
          folder / "c.bin", "megatron");
  write(folder / "f.bin", "megatron", {{50, 1, 2}, {50, 3}});
  EXPECT_EQ(file_text(folder / "c.idx"), file_text(folder / "f.idx"));
}

// Longer than every buffer, so that a document comes in pieces.
TEST(Convert, KeepsALongDocumentWhole) {
  const TempFolder folder;
  std::vector<std::uint32_t> tokens(3'000'000);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint32_t>(i % 60'000);
  write(folder / "a.bin", "megatron", {{7}, tokens, {8}});
  convert({.paths = {folder / "a.bin"}, .tokens = true}, folder / "b.bin", "megatron", "int32");
  write(folder / "e.bin", "megatron", {{7}, tokens, {8}}, "int32");
  EXPECT_TRUE(file_text(folder / "b.bin") == file_text(folder / "e.bin"));
  EXPECT_EQ(file_text(folder / "b.idx"), file_text(folder / "e.idx"));
}

TEST(Convert, NamesTheDocumentWhoseIdDoesNotFit) {
  const TempFolder folder;
  write(folder / "a.bin", "megatron", {{1}, {2, 3, 300}});
  const JobSource source{.paths = {folder / "a.bin"}, .tokens = true};
  const std::string said = thrown<std::invalid_argument>(
      [&] { convert(source, folder / "b.bin", "megatron", "uint8"); });
  EXPECT_NE(said.find("document 1: id 300 at token 2"), std::string::npos) << said;
  const std::string array =
      thrown<std::invalid_argument>([&] { convert(source, folder / "b.npy", "npy", "uint8"); });
  EXPECT_NE(array.find("document 1: id 300 at token 2 does not fit uint8"), std::string::npos)
      << array;
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"a.bin", "a.idx"}));
}

TEST(Convert, TurnsTokensIntoArraysAndBack) {
  const TempFolder folder;
  write(folder / "a.bin", "megatron", kDocuments);
  convert({.paths = {folder / "a.bin"}, .tokens = true}, folder / "b.npy", "npy", "int64");
  EXPECT_EQ(array_bytes(folder / "b.npy"),
            text_of(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  convert({.paths = {folder / "b.npy"}}, folder / "c.bin", "nanogpt", "uint16");
  EXPECT_EQ(file_text(folder / "c.bin"), file_text(folder / "a.bin"));
  folder.write("f.npy", npy_text("<f4", {4}, pattern(16)));
  const auto said = [&](const std::string& format) {
    return thrown<std::invalid_argument>(
        [&] { convert({.paths = {folder / "f.npy"}}, folder / "d.bin", format); });
  };
  EXPECT_NE(said("nanogpt").find("integers"), std::string::npos);
  EXPECT_NE(said("parquet").find("expected one that can be written"), std::string::npos);
}

TEST(Convert, MakesArraysPlain) {
  const TempFolder folder;
  folder.write("f.npy", npy_text("|u1", {2, 3}, "adbecf", true));
  convert({.paths = {folder / "f.npy"}}, folder / "c.npy", "npy");
  EXPECT_FALSE(Array::open(folder / "c.npy").fortran_order());
  EXPECT_EQ(array_bytes(folder / "c.npy"), "abcdef");
  convert({.paths = {folder / "c.npy"}}, folder / "c.raw", "raw");
  EXPECT_EQ(file_text(folder / "c.raw"), "abcdef");
  OpenOptions raw;
  raw.dtype = "uint8";
  raw.shape = {{2, 3}};
  convert({.paths = {folder / "c.raw"}, .array = raw}, folder / "d.npy", "npy");
  EXPECT_EQ(file_text(folder / "d.npy"), file_text(folder / "c.npy"));
}

// A pair whose documents have several sequences, as Megatron's tools make them.
void write_pair(const TempFolder& folder, const std::string& name,
                const std::vector<std::int32_t>& lengths,
                const std::vector<std::int64_t>& boundaries, std::uint64_t seed) {
  MegatronIndex index{.lengths = lengths, .boundaries = boundaries};
  std::int64_t bytes = 0;
  for (const std::int32_t length : lengths) {
    index.pointers.push_back(bytes);
    bytes += 2 * length;
  }
  folder.write(name + ".bin", pattern(static_cast<std::size_t>(bytes), seed));
  folder.write(name + ".idx", index.bytes());
}

TEST(Merge, KeepsSequencesAndDocumentsOfPairs) {
  const TempFolder folder;
  write_pair(folder, "a", {3, 0, 2, 5}, {0, 2, 2, 4}, 1);
  write_pair(folder, "b", {1}, {0, 1}, 2);
  write_pair(folder, "c", {4, 4}, {0, 2}, 3);
  std::vector<JobSource> sources;
  for (const std::string name : {"a", "b", "c"})
    sources.push_back({.paths = {folder / (name + ".bin")}, .tokens = true});
  plan_merge(sources, folder / "m.bin", {.memory_bytes = kMemory}).run();
  MegatronIndex expected{.lengths = {3, 0, 2, 5, 1, 4, 4}, .boundaries = {0, 2, 2, 4, 5, 7}};
  expected.pointers = {0, 6, 6, 10, 20, 22, 30};
  EXPECT_EQ(file_text(folder / "m.idx"), expected.bytes());
  EXPECT_EQ(file_text(folder / "m.bin"), pattern(20, 1) + pattern(2, 2) + pattern(16, 3));
}

TEST(Merge, GivesTheFileOfAllDocuments) {
  for (const Format& format : kFormats) {
    SCOPED_TRACE(format.word);
    const TempFolder folder;
    write(folder / ("a" + format.suffix), format.word, kDocuments);
    write(folder / ("b" + format.suffix), format.word, {{9}});
    const std::vector<JobSource> sources{
        {.paths = {folder / ("a" + format.suffix)}, .tokens = true},
        {.paths = {folder / ("b" + format.suffix)}, .tokens = true}};
    plan_merge(sources, folder / ("m" + format.suffix), {.memory_bytes = kMemory}).run();
    Documents all = kDocuments;
    all.push_back({9});
    write(folder / ("e" + format.suffix), format.word, all);
    EXPECT_EQ(file_text(folder / ("m" + format.suffix)), file_text(folder / ("e" + format.suffix)));
    for (const std::string index : {".idx", ".ds.index"})
      EXPECT_EQ(file_text(folder / ("m" + index)), file_text(folder / ("e" + index)));
  }
}

TEST(Merge, SaysWhichMemoryWouldDo) {
  const TempFolder folder;
  folder.write("a.npy", npy_text("<f4", {2, 3}, pattern(24)));
  const std::vector<JobSource> sources{{.paths = {folder / "a.npy"}}};
  for (const std::uint64_t memory : {1, 600 << 10}) {
    const std::string text = thrown<std::invalid_argument>(
        [&] { (void)plan_merge(sources, folder / "m.npy", {.memory_bytes = memory}); });
    const std::size_t advice = text.find("use at least ");
    ASSERT_NE(advice, std::string::npos) << text;
    const std::uint64_t enough = parse_bytes(text.substr(advice + 13));
    EXPECT_NO_THROW(
        plan_merge(sources, folder / "n.npy", {.memory_bytes = enough, .overwrite = true}).run())
        << text;
  }
}

TEST(Merge, JoinsArraysAlongTheFirstAxis) {
  const TempFolder folder;
  folder.write("a.npy", npy_text("<f4", {2, 3}, pattern(24)));
  folder.write("b.npy", npy_text("<f4", {1, 3}, pattern(12, 2)));
  folder.write("c.npy", npy_text("<f4", {1, 4}, pattern(16, 3)));
  folder.write("d.npy", npy_text("<f8", {1, 3}, pattern(24, 3)));
  const auto merge = [&](const std::string& other) {
    plan_merge(std::vector<JobSource>{{.paths = {folder / "a.npy"}}, {.paths = {folder / other}}},
               folder / "m.npy")
        .run();
  };
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              merge("c.npy");
            }).find("differs from the first source in its row shape: (4,), not (3,)"),
            std::string::npos);
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              merge("d.npy");
            }).find("differs from the first source in its dtype: '<f8', not '<f4'"),
            std::string::npos);
  merge("b.npy");
  EXPECT_EQ(array_bytes(folder / "m.npy"), pattern(24) + pattern(12, 2));
  EXPECT_EQ(Array::open(folder / "m.npy").shape(), (std::vector<std::uint64_t>{3, 3}));
  folder.write("m.npy", "another");
  EXPECT_EQ(caught<IoError>([&] { merge("b.npy"); })->err, EEXIST);
}

TEST(CheckJob, HasATaskForEachFileAndFindsTheFault) {
  const TempFolder folder;
  folder.write("a1.npy", npy_text("|b1", {3}, std::string("\1\0\1", 3)));
  folder.write("a2.npy", npy_text("|b1", {3}, std::string("\1\2\1", 3)));
  const Plan plan = Plan::from_text(plan_check({.paths = {folder / "a?.npy"}}).text());
  ASSERT_EQ(plan.tasks(0), 2u);
  plan.run_task(0, 0);
  EXPECT_NE(thrown<FormatError>([&] { plan.run_task(0, 1); }).find("a2.npy"), std::string::npos);
  EXPECT_FALSE(plan.done(0, 0));
}

}  // namespace
}  // namespace lowtide::copy_test
