#include "token_format/token_output.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/token_files.h"

namespace lowtide::token_output_test {
namespace {

using Lengths = std::vector<std::uint64_t>;

std::string golden_file(const std::string& name) {
  std::ifstream file(golden("tokens") / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string header_of(const TokenTarget& target, const TokenTotals& totals) {
  std::string header(target.output->header_bytes, 'x');
  if (!header.empty()) {
    target.output->store_header(totals, std::as_writable_bytes(std::span(header)));
  }
  return header;
}

// The whole index, made with this much room.
std::string index_of(const TokenTarget& target, const TokenTotals& totals, const Lengths& lengths,
                     std::size_t room_bytes = 64) {
  const IndexOutput& index = *target.output->index;
  std::string column;
  DocumentPlace place{.item_bytes = totals.dtype.itemsize_bytes};
  std::vector<std::byte> entry(index.columns[0].entry_bytes);
  for (const std::uint64_t tokens : lengths) {
    place.tokens = tokens;
    index.columns[0].store(place, entry.data());
    column += as_text(entry);
    place.first_token += tokens;
    ++place.number;
  }
  std::string out(index.header_bytes, 'x');
  if (!out.empty()) index.store_header(totals, std::as_writable_bytes(std::span(out)));
  out += column;
  std::vector<std::byte> room(room_bytes);
  make_columns(
      index, totals, room,
      [&](std::uint64_t offset_bytes, std::span<std::byte> into) {
        EXPECT_LE(into.size(), room_bytes / 2);
        std::memcpy(into.data(), column.data() + offset_bytes, into.size());
      },
      [&](std::span<const std::byte> bytes) { out += as_text(bytes); });
  EXPECT_EQ(out.size(), index_bytes(index, lengths.size()));
  return out;
}

TokenTotals totals_of(const TokenTarget& target, const Lengths& lengths) {
  return target.totals(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}),
                       lengths.size());
}

TokenTarget target_of(const std::string& path, const std::string& format,
                      const std::string& dtype) {
  return token_target(path, format, DType::parse(dtype));
}

std::string refused(const std::string& path, const std::string& format, const std::string& dtype) {
  return thrown<std::invalid_argument>([&] { return target_of(path, format, dtype).format; });
}

TEST(TokenOutput, IsTheHeaderThatTheToolsWrite) {
  const auto header = [](const char* name, const char* dtype) {
    const TokenTarget target = target_of("t.bin", "llmc", dtype);
    EXPECT_EQ(header_of(target, target.totals(60, 1)), golden_file(name).substr(0, 1024)) << name;
  };
  header("llmc_gpt2.bin", "uint16");
  header("llmc_llama3.bin", "uint32");
}

TEST(TokenOutput, IsTheIndexThatTheToolsWrite) {
  const Lengths lengths{5, 1, 12, 0, 30};  // DOCUMENTS of tests/golden/make_tokens.py
  for (const char* dtype : {"uint8", "int8", "int16", "int32", "int64", "uint16"}) {
    const TokenTarget target = target_of("t.bin", "megatron", dtype);
    EXPECT_EQ(index_of(target, totals_of(target, lengths), lengths),
              golden_file("megatron_" + std::string(dtype) + ".idx"))
        << dtype;
  }
}

TEST(TokenOutput, IsTheEndsOfDatatrove) {
  const Lengths lengths{5, 0, 2};
  const TokenTarget target = target_of("t.ds", "datatrove", "uint32");
  EXPECT_EQ(target.index_path, "t.ds.index");
  EXPECT_EQ(index_of(target, totals_of(target, lengths), lengths),
            little_endian(std::vector<std::uint64_t>{5, 5, 7}));
}

TEST(TokenOutput, IsReadBackAsItWasMeant) {
  for (const std::string_view word : writable_token_words()) {
    for (std::size_t i = 0; i < kTokenTypes; ++i) {
      const std::string dtype(kTokenTypeTable[i].name);
      const std::string path = word == "olmo" ? "t.npy" : word == "datatrove" ? "t.ds" : "t.bin";
      TokenTarget target;
      try {
        target = target_of(path, std::string(word), dtype);
      } catch (const std::invalid_argument&) {
        continue;
      }
      SCOPED_TRACE(std::string(word) + " " + dtype);
      const Lengths lengths{3, 0, 0, 7, 1};
      const TokenTotals totals = totals_of(target, lengths);
      TokenFolder folder;
      folder.write(path, header_of(target, totals),
                   target.output->header_bytes + 11 * token_bytes(target.type));
      if (!target.index_path.empty()) {
        folder.write(target.index_path, index_of(target, totals, lengths));
      }
      const TokenLayout layout = folder.open(path, given_dtype(dtype));
      EXPECT_EQ(layout.format, word);
      EXPECT_EQ(layout.dtype, DType::parse(dtype));
      EXPECT_EQ(layout.tokens, 11u);
      EXPECT_EQ(layout.documents.has_value(), !target.index_path.empty());
      if (layout.documents) {
        EXPECT_EQ(layout.documents->documents, 5u);
        EXPECT_EQ(layout.documents->sequences, 5u);
      }
    }
  }
}

TEST(TokenOutput, DoesNotDependOnTheRoomForTheIndex) {
  Lengths lengths(1000);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = i * 7 % 31;
  const TokenTarget target = target_of("t.bin", "megatron", "uint16");
  const TokenTotals totals = totals_of(target, lengths);
  const std::string expected = index_of(target, totals, lengths, 1 << 20);
  for (const std::size_t room_bytes : {16, 18, 40, 100, 8000, 8001}) {
    EXPECT_EQ(index_of(target, totals, lengths, room_bytes), expected) << room_bytes;
  }
}

TEST(TokenOutput, WithoutDocumentsIsAnIndexOfNone) {
  const TokenTarget target = target_of("t.bin", "megatron", "uint16");
  const std::string index = index_of(target, target.totals(0, 0), {});
  EXPECT_EQ(index, (MegatronIndex{.boundaries = {0}}.bytes()));
}

TEST(TokenOutput, HasPointersBeyondFourGigabytes) {
  const std::uint64_t longest = std::numeric_limits<std::int32_t>::max();
  const Lengths lengths{longest, longest, 5};
  const TokenTarget target = target_of("t.bin", "megatron", "int32");
  const auto at = static_cast<std::int64_t>(4 * longest);
  EXPECT_EQ(index_of(target, totals_of(target, lengths), lengths),
            (MegatronIndex{.code = 4,
                           .lengths = {static_cast<std::int32_t>(longest),
                                       static_cast<std::int32_t>(longest), 5},
                           .pointers = {0, at, 2 * at},
                           .boundaries = {0, 1, 2, 3}}
                 .bytes()));
  EXPECT_EQ(target.output->most_document_tokens, longest);
}

TEST(TokenOutput, RefusesLengthsThatDoNotAddUp) {
  const TokenTarget target = target_of("t.bin", "megatron", "uint16");
  EXPECT_EQ(thrown<FormatError>([&] { return index_of(target, target.totals(4, 2), {1, 2}); }),
            "the index that is being written: expected 4 tokens in all documents, found 3; is "
            "another program writing to it?");
}

TEST(TokenOutput, RefusesWhatAFormatCannotStore) {
  EXPECT_EQ(refused("t.bin", "megatron", "uint32"),
            "dtype: expected one that megatron files store (uint8, int8, uint16, int16, int32, "
            "int64), found '<u4'");
  EXPECT_EQ(refused("t.bin", "llmc", "int64"),
            "dtype: expected one that llmc files store (uint16, uint32), found '<i8'");
  EXPECT_EQ(refused("t.bin", "nanogpt", "float32").substr(0, 20), "dtype: expected one ");
  EXPECT_EQ(refused("t.bin", "nanogpt", ">u2").substr(0, 20), "dtype: expected one ");
  EXPECT_EQ(
      refused("t.bin", "mds", "uint16"),
      "format: expected one that can be written (megatron, llmc, datatrove, olmo, nanogpt), found "
      "'mds', which is only read");
  EXPECT_EQ(
      refused("t.bin", "parquet", "uint16"),
      "format: expected one that can be written (megatron, llmc, datatrove, olmo, nanogpt), found "
      "'parquet'");
  EXPECT_EQ(
      refused("t.npy", "npy", "uint16"),
      "format: expected one that can be written (megatron, llmc, datatrove, olmo, nanogpt), found "
      "'npy', which is only read");
  EXPECT_EQ(refused("t.bin", "raw", "uint16"), "no error, but nanogpt");
}

TEST(TokenOutput, RefusesNamesUnderWhichItWouldNotBeFound) {
  EXPECT_EQ(refused("d.bin/t", "megatron", "uint16"),
            "path: expected a name that ends in .bin, as megatron files are named, found "
            "'d.bin/t'");
  EXPECT_EQ(refused("a/.npy", "olmo", "uint16"),
            "path: expected a name that ends in .npy, as olmo files are named, found 'a/.npy'");
  EXPECT_EQ(refused("tokens", "nanogpt", "uint16"), "no error, but nanogpt");
}

TEST(TokenOutput, KnowsWhichIndexBelongsBesideIt) {
  EXPECT_EQ(target_of("a/t.bin", "megatron", "uint16").index_path, "a/t.idx");
  EXPECT_EQ(target_of("a/t.bin", "megatron", "uint16").stray_index_path, "");
  EXPECT_EQ(target_of("a/t.bin", "nanogpt", "uint16").index_path, "");
  EXPECT_EQ(target_of("a/t.bin", "nanogpt", "uint16").stray_index_path, "a/t.idx");
  EXPECT_EQ(target_of("a/t", "nanogpt", "uint16").stray_index_path, "");
}

}  // namespace
}  // namespace lowtide::token_output_test
