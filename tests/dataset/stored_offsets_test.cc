// Offsets that are stored in a file: held in memory, or read when they are needed.
#include "dataset/stored_offsets.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::stored_offsets_test {
namespace {

// One file of int64, served from memory; counts the reads.
struct Stored {
  explicit Stored(std::vector<std::int64_t> of) : entries(std::move(of)) {
    Layout layout;
    layout.dtype = DType::parse("<i8");
    layout.shape = {entries.size()};
    Rows all;
    all.add({make_layout(layout, "p"), {"p"}});
    rows = std::make_shared<const Rows>(all.from_shard(3));
  }
  [[nodiscard]] StoredOffsets open(std::uint64_t values, bool held) {
    return StoredOffsets(
        rows,
        [this](std::span<const Read> reads) {
          for (const Read& read : reads) {
            ASSERT_EQ(read.from.shard, 3U);
            ASSERT_LE(read.from.end_bytes(), entries.size() * 8);
            std::memcpy(read.into,
                        reinterpret_cast<const std::byte*>(entries.data()) + read.from.offset_bytes,
                        read.from.size_bytes);
            ++read_count;
          }
        },
        values, held);
  }

  std::vector<std::int64_t> entries;
  std::shared_ptr<const Rows> rows;
  int read_count = 0;
};

std::vector<std::int64_t> random_offsets(std::size_t samples, std::uint32_t most) {
  std::mt19937 random(5);
  std::vector<std::int64_t> all{0};
  for (std::size_t i = 0; i < samples; ++i) all.push_back(all.back() + random() % (most + 1));
  return all;
}

void expect_all(const StoredOffsets& found, const std::vector<std::int64_t>& entries) {
  const std::uint64_t samples = entries.size() - 1;
  ASSERT_EQ(found.size(), samples);
  EXPECT_EQ(found.end(), static_cast<std::uint64_t>(entries.back()));
  std::vector<std::uint64_t> numbers(samples), starts(samples), ends(samples);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
  found.bounds(numbers, starts, ends);
  for (std::size_t i = 0; i < samples; ++i) {
    ASSERT_EQ(starts[i], static_cast<std::uint64_t>(entries[numbers[i]]));
    ASSERT_EQ(ends[i], static_cast<std::uint64_t>(entries[numbers[i] + 1]));
  }
  for (const std::uint64_t first : {std::uint64_t{0}, samples / 2, samples}) {
    std::vector<std::uint64_t> out(samples + 1 - first);
    found.offsets(first, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], static_cast<std::uint64_t>(entries[first + i]));
    }
  }
}

TEST(StoredOffsets, HeldOrReadTheyAreThoseOfTheFile) {
  for (const std::size_t samples : {0U, 1U, 63U, 64U, 65U, 128U, 70'000U}) {
    Stored stored(random_offsets(samples, 9));
    for (const bool held : {true, false}) {
      const StoredOffsets found = stored.open(1'000'000, held);
      const int before = stored.read_count;
      expect_all(found, stored.entries);
      if (held && samples > 0) {
        EXPECT_EQ(stored.read_count, before);
      } else {
        EXPECT_GT(stored.read_count, before);
      }
    }
  }
}

TEST(StoredOffsets, LongSamplesAreNotHeld) {
  for (const std::int64_t length : {65'535, 65'536}) {
    Stored stored({0, 5, 5 + length, 9 + length});
    const StoredOffsets found = stored.open(1'000'000, true);
    EXPECT_EQ(found.longest(), static_cast<std::uint64_t>(length));
    const int before = stored.read_count;
    expect_all(found, stored.entries);
    EXPECT_EQ(stored.read_count > before, length > 65'535);
  }
}

TEST(StoredOffsets, RefusesWhatCannotBe) {
  const auto refused = [](std::vector<std::int64_t> entries) {
    return thrown<FormatError>([&] { (void)Stored(std::move(entries)).open(10, true); });
  };
  EXPECT_EQ(refused({0, 4, 3}),
            "p: indptr: entry 2 is 3, less than the entry before it, which is 4");
  EXPECT_EQ(refused({2, 4}), "p: indptr: entry 0 is 2, but must be 0");
  EXPECT_EQ(refused({0, -4}), "p: indptr: entry 1 is -4, but must not be negative");
  EXPECT_EQ(refused({0, 11}), "p: indptr: entry 1 is 11, but there are only 10 values");
}

TEST(StoredOffsets, AFileThatChangedCannotMakeASampleLonger) {
  Stored stored({0, 4, 8});
  const StoredOffsets found = stored.open(100, false);
  std::vector<std::uint64_t> start(1), end(1);
  for (const std::int64_t wrong : {-1, 5, 99}) {
    stored.entries[1] = wrong;
    EXPECT_THROW(found.bounds(std::vector<std::uint64_t>{0}, start, end), FormatError) << wrong;
  }
}

}  // namespace
}  // namespace lowtide::stored_offsets_test
