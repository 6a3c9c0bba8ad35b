// MDS, the format of MosaicML streaming: a folder of shards, each with the number of its samples,
// the byte at which each of them starts (u32), the columns as JSON, and the samples. An index.json
// lists the shards in their order.
//
// Each sample is a document. Its tokens are one column of it (mds.h). Where the size of a sample
// says where they are, opening reads the table, in slices of 256 KiB, and only the first and the
// last sample's header; `every_header` reads them all. Otherwise, with other columns of any size,
// opening reads the header of every sample. Refuses pickles, and shards that exist only compressed.
#include "token_format/mds.h"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "token_format/token_source.h"

namespace lowtide::mds {
namespace {

constexpr std::string_view kDataSuffix = ".mds";
constexpr std::uint64_t kWordBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kSliceWords = 64 * 1024;
constexpr std::uint64_t kMaxColumnsBytes = 1 << 20;

std::uint64_t mds_table_end(std::uint64_t samples) {
  return kWordBytes * (samples + 2);
}

std::uint32_t mds_word(const TokenFile& file, std::uint64_t at_bytes) {
  std::array<std::byte, kWordBytes> word;
  file.read(at_bytes, word);
  return load_little<std::uint32_t>(word.data());
}

// The table ends before the first sample, the last sample ends where the file does, and JSON is
// between the table and the samples.
bool matches(const TokenSource& source) {
  if (source.file.path.ends_with(kDataSuffix)) return true;
  if (source.start.size() < kTokenStartBytes) return false;
  const std::uint64_t end = mds_table_end(load_little<std::uint32_t>(source.start.data()));
  const TokenFile& file = source.file;
  if (load_little<std::uint32_t>(&source.start[kWordBytes]) <= end || end >= file.file_bytes ||
      mds_word(file, end - kWordBytes) != file.file_bytes) {
    return false;
  }
  std::array<std::byte, 1> first;
  file.read(end, first);
  return first[0] == std::byte{'{'};
}

TokenColumn column_of(const TokenFile& file, std::uint64_t begin, std::uint64_t end,
                      const std::optional<std::string>& key) {
  if (end - begin > kMaxColumnsBytes) {
    throw FormatError(file.path + ": expected at most 1 MiB of JSON at byte " +
                      std::to_string(begin) + ", found " + std::to_string(end - begin) + " bytes");
  }
  std::string json(end - begin, '\0');
  file.read(begin, std::as_writable_bytes(std::span(json)));
  try {
    return read_token_column(json, key);
  } catch (const FormatError& error) {
    throw FormatError(file.path + ": " + error.what());
  }
}

std::uint32_t sample_count(const TokenFile& file) {
  if (file.file_bytes < mds_table_end(0)) {
    throw FormatError(file.path + ": expected an MDS shard of at least 8 bytes, found " +
                      std::to_string(file.file_bytes));
  }
  const std::uint32_t samples = mds_word(file, 0);
  if (mds_table_end(samples) <= file.file_bytes) return samples;
  throw FormatError(file.path + ": expected a table of " + std::to_string(mds_table_end(samples)) +
                    " bytes for the " + std::to_string(samples) +
                    " samples of bytes 0 to 3, found the end at byte " +
                    std::to_string(file.file_bytes));
}

// Calls `use` with each sample's number, begin and end; they follow each other up to the end of the
// file.
template <typename Use>
void for_samples(const TokenFile& file, std::uint32_t samples, std::uint64_t first_byte,
                 const Use& use) {
  const auto fail = [&](std::uint64_t number, const std::string& expected, std::uint64_t found) {
    throw FormatError(file.path + ": offset " + std::to_string(number) + " (at byte " +
                      std::to_string(kWordBytes * (number + 1)) + "): expected " + expected +
                      ", found " + std::to_string(found));
  };
  std::vector<std::byte> slice(std::min<std::uint64_t>(samples, kSliceWords) * kWordBytes);
  std::uint64_t before = first_byte;
  for (std::uint64_t first = 0; first < samples; first += kSliceWords) {
    const std::uint64_t count = std::min<std::uint64_t>(kSliceWords, samples - first);
    file.read(kWordBytes * (first + 2), std::span(slice).first(count * kWordBytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t end = load_little<std::uint32_t>(&slice[i * kWordBytes]);
      const std::uint64_t number = first + i + 1;
      if (end < before) fail(number, std::to_string(before) + " or more", end);
      if (end > file.file_bytes) {
        fail(number, "at most the size " + std::to_string(file.file_bytes), end);
      }
      use(first + i, before, end);
      before = end;
    }
  }
  if (before != file.file_bytes)
    fail(samples, "the size " + std::to_string(file.file_bytes), before);
}

[[noreturn]] void fail_memory(const TokenSource& source, std::uint64_t samples) {
  throw std::invalid_argument("memory: " + source.file.path + " has " + std::to_string(samples) +
                              " samples of different lengths, whose table of offsets needs " +
                              format_bytes(TokenRecords::table_bytes(samples)) + ", but only " +
                              format_bytes(source.given.most_record_bytes) +
                              " is left for it; use more memory");
}

TokenLayout open(const TokenSource& source) {
  const TokenFile& file = source.file;
  const std::uint32_t samples = sample_count(file);
  const std::uint64_t table_end = mds_table_end(samples);
  const std::uint64_t first_byte = mds_word(file, kWordBytes);
  if (first_byte < table_end || first_byte > file.file_bytes) {
    throw FormatError(file.path + ": offset 0 (at byte 4): expected a byte between the table and " +
                      "the end, " + std::to_string(table_end) + " to " +
                      std::to_string(file.file_bytes) + ", found " + std::to_string(first_byte));
  }
  Samples finder(file, column_of(file, table_end, first_byte, source.given.key), source.given);
  auto records = std::make_shared<TokenRecords>(samples);
  for_samples(
      file, samples, first_byte, [&](std::uint64_t sample, std::uint64_t begin, std::uint64_t end) {
        const bool at_an_end = sample == 0 || sample + 1 == samples;
        const auto [offset_bytes, count] = finder.find(
            sample, begin, end, at_an_end || source.given.every_header || !finder.implied());
        const auto at = static_cast<std::uint32_t>(offset_bytes);
        const auto tokens = static_cast<std::uint32_t>(count);
        if (records->regular() && !records->stays_regular(at, tokens) &&
            TokenRecords::table_bytes(samples) > source.given.most_record_bytes) {
          fail_memory(source, samples);
        }
        records->add(at, tokens);
      });
  TokenLayout layout;
  layout.data_path = file.path;
  layout.key = finder.column();
  layout.dtype = finder.dtype().value_or(source.given.dtype.value_or(DType::parse("<i4")));
  check_given_dtype(source.given, layout.dtype, file.path);
  layout.records = std::move(records);
  layout.documents = {
      .path = file.path, .by = DocumentsBy::records, .sequences = samples, .documents = samples};
  return layout;
}

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = "mds",
                                    .suffix = kDataSuffix,
                                    .has_columns = true,
                                    .matches = matches,
                                    .open = open,
                                    .list_key = "shards",
                                    .read_list = read_list};

}  // namespace lowtide::mds
