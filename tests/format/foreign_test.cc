#include "format/foreign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "support/golden.h"
#include "support/thrown.h"
#include "token_format/tokens.h"

namespace lowtide::foreign_test {
namespace {

using std::string_literals::operator""s;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ReadStart reader(const std::string& bytes) {
  return [&bytes](std::uint64_t offset_bytes, std::span<std::byte> out) {
    if (offset_bytes > bytes.size() || out.size() > bytes.size() - offset_bytes) {
      throw std::logic_error("read outside the file");
    }
    std::memcpy(out.data(), bytes.data() + offset_bytes, out.size());
  };
}

std::string found_in(const std::string& bytes) {
  const auto start = std::as_bytes(std::span(bytes))
                         .first(std::min<std::size_t>(bytes.size(), kForeignStartBytes));
  const auto found = recognise_foreign(start, bytes.size());
  return found ? std::string(found->what) : "nothing";
}

std::string error_as_array(const std::string& bytes, const raw::Description& given = {}) {
  return thrown<FormatError>(
      [&] { return open_layout("f.x", bytes.size(), reader(bytes), given).format; });
}

std::string error_as_tokens(const std::string& bytes, const TokenGiven& given = {}) {
  const OpenBeside nothing = [](const std::string&) { return std::nullopt; };
  return thrown<FormatError>([&] {
    const TokenFile file{"f.x", bytes.size(), reader(bytes)};
    return open_token_layout(file, nothing, given).format;
  });
}

struct Golden {
  std::string name, words;
};

std::vector<Golden> golden_files() {
  std::ifstream file(golden("foreign") / "expected.txt");
  std::vector<Golden> all;
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    all.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  return all;
}

TEST(Foreign, FilesOfOtherToolsAreNamedForWhatTheyAre) {
  const std::vector<Golden> files = golden_files();
  ASSERT_GE(files.size(), 25u);
  for (const Golden& file : files) {
    SCOPED_TRACE(file.name);
    const std::string bytes = read_file(golden("foreign") / file.name);
    EXPECT_EQ(found_in(bytes).substr(0, file.words.size()), file.words);
  }
}

TEST(Foreign, NeitherArraysNorTokensAreMadeOfThem) {
  for (const Golden& file : golden_files()) {
    SCOPED_TRACE(file.name);
    const std::string bytes = read_file(golden("foreign") / file.name);
    if (!is_array_file("f.x", bytes.size(), reader(bytes))) {
      EXPECT_EQ(error_as_array(bytes).find("f.x: expected an array, found " + file.words), 0u)
          << error_as_array(bytes);
    }
    EXPECT_EQ(error_as_tokens(bytes).find("f.x: expected tokens, found " + file.words), 0u)
        << error_as_tokens(bytes);
  }
}

TEST(Foreign, SomeAreArraysAllTheSame) {
  const auto error = [](const char* name) {
    return error_as_array(read_file(golden("foreign") / name));
  };
  EXPECT_EQ(error("arrays.npz"), "no error, but npz");
  EXPECT_EQ(error("m.safetensors"), "no error, but safetensors");
  EXPECT_NE(error("compressed.npz").find("np.savez instead of np.savez_compressed"),
            std::string::npos);
}

TEST(Foreign, TheMessageSaysWhatToDoAndHowToReadTheBytesNevertheless) {
  const std::string bytes = read_file(golden("foreign") / "arrays.npz");
  EXPECT_EQ(error_as_tokens(bytes),
            "f.x: expected tokens, found a NumPy .npz (a zip archive): unzip it and open the "
            ".npy files in it. To read its bytes as raw data anyway, give their dtype");
}

TEST(Foreign, ADtypeGivenIsTheWordForRawData) {
  raw::Description array;
  array.dtype = DType::parse("|u1");
  TokenGiven tokens;
  tokens.dtype = DType::parse("|u1");
  for (const Golden& file : golden_files()) {
    SCOPED_TRACE(file.name);
    const std::string bytes = read_file(golden("foreign") / file.name);
    EXPECT_EQ(error_as_array(bytes, array), "no error, but raw");
    EXPECT_EQ(error_as_tokens(bytes, tokens), "no error, but nanogpt");
  }
}

TEST(Foreign, AFormatWordAloneDoesNotMakeThemTokens) {
  const std::string bytes = read_file(golden("foreign") / "arrays.npz");
  TokenGiven given;
  given.format = "nanogpt";
  EXPECT_NE(error_as_tokens(bytes, given).find("a NumPy .npz"), std::string::npos);
}

TEST(Foreign, Hdf5IsFoundBehindItsUserBlock) {
  const std::string magic = "\x89HDF\r\n\x1a\n";
  for (const std::size_t block : {0, 512, 1024, 2048, 4096}) {
    EXPECT_EQ(found_in(std::string(block, 'x') + magic + std::string(100, '\0')), "an HDF5 file");
  }
  EXPECT_EQ(found_in(std::string(513, 'x') + magic + std::string(100, '\0')), "nothing");
}

TEST(Foreign, AStartThatIsCutShortIsNothing) {
  for (const Golden& file : golden_files()) {
    SCOPED_TRACE(file.name);
    const std::string bytes = read_file(golden("foreign") / file.name);
    for (std::size_t size = 0; size < std::min<std::size_t>(bytes.size(), 600); ++size) {
      const std::string found = found_in(bytes.substr(0, size));
      const bool known = found == "nothing" || found == "text" || found == "a zip archive" ||
                         found.starts_with(file.words);
      EXPECT_TRUE(known) << size << ": " << found;
    }
    EXPECT_EQ(found_in(bytes.substr(0, 2)), "nothing");
  }
}

TEST(Foreign, TextIsLongAndWithoutControlCharacters) {
  const std::string line = "the quick brown fox jumps over the lazy dog, naïvely\n";
  EXPECT_EQ(found_in(line + line), "text");
  EXPECT_EQ(found_in(line), "nothing");  // too short to tell
  EXPECT_EQ(found_in(line + line + "\0"s), "nothing");
  EXPECT_EQ(found_in(line + line + "\x1b"), "nothing");
  EXPECT_EQ(found_in(line + line + "\xff"), "nothing");
  EXPECT_EQ(found_in(std::string(1000, 'x')), "nothing");
  // A character that the end of the sample cuts in two is no fault of the text.
  std::string longer = "a ";
  while (longer.size() < 2 * kForeignStartBytes) longer += "\xe9\xab\x98";
  EXPECT_EQ(found_in(longer), "text");
}

TEST(Foreign, NumbersAreNotTakenForAnyOfThem) {
  std::mt19937_64 chance(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(256, '\0');
    const std::uint64_t below = round % 2 == 0 ? 50257 : 65536;
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
      const std::uint64_t token = chance() % below;
      bytes[at] = static_cast<char>(token & 0xff);
      bytes[at + 1] = static_cast<char>(token >> 8);
    }
    ASSERT_EQ(found_in(bytes), "nothing");
  }
  for (const int protocol : {2, 3, 4, 5}) {  // a first token of 640, 896, 1152 or 1408
    std::string bytes(256, '\0');
    for (char& c : bytes) c = static_cast<char>(chance() % 256);
    bytes[0] = '\x80';
    bytes[1] = static_cast<char>(protocol);
    EXPECT_EQ(found_in(bytes), "nothing");
  }
}

}  // namespace
}  // namespace lowtide::foreign_test
