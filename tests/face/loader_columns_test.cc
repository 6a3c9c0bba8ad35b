// Loaders of rows of several arrays that come together, and of samples of different lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "lowtide/loader.h"
#include "support/forked.h"
#include "support/npy_file.h"
#include "support/thrown.h"
#include "support/token_files.h"

namespace lowtide::loader_columns_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kRows = 5000;
constexpr std::size_t kWidth = 64;  // floats in a row of x

// x has 1.2 MiB, whose first element is the number of the row; y has that number.
struct Pair {
  explicit Pair(std::uint64_t memory_bytes = kMiB)
      : read{.memory_bytes = memory_bytes, .engine = EngineKind::pread} {
    std::vector<float> values(kRows * kWidth, 0.5F);
    for (std::size_t row = 0; row < kRows; ++row) {
      values[row * kWidth] = static_cast<float>(row);
      values[row * kWidth + kWidth - 1] = -static_cast<float>(row);
    }
    std::vector<std::int64_t> labels(kRows);
    std::iota(labels.begin(), labels.end(), 0);
    x = open("x.npy", "<f4", {kRows, kWidth}, std::span(values));
    y = open("y.npy", "<i8", {kRows}, std::span(labels));
  }
  template <class T>
  Array open(const std::string& name, const std::string& type, std::vector<std::uint64_t> shape,
             std::span<T> values) const {
    const std::string text(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return Array::open(folder.write(name, npy_text(type, shape, text)), {.read = read});
  }

  TempFolder folder;
  ReadOptions read;
  std::optional<Array> x, y;
};

void expect_pair(const Batch& batch) {
  ASSERT_EQ(batch.columns(), 2U);
  const auto xs = batch.as<float>(0);
  const auto ys = batch.as<std::int64_t>(1);
  ASSERT_EQ(ys.size(), batch.rows());
  ASSERT_EQ(xs.size(), batch.rows() * kWidth);
  for (std::size_t i = 0; i < batch.rows(); ++i) {
    ASSERT_EQ(static_cast<std::uint64_t>(ys[i]), batch.index()[i]);
    ASSERT_EQ(xs[i * kWidth], static_cast<float>(ys[i]));
    ASSERT_EQ(xs[i * kWidth + kWidth - 1], -static_cast<float>(ys[i]));
  }
}

std::uint64_t claim_of(const Loader& loader, const std::string& what) {
  std::uint64_t all = 0;
  const Stats stats = loader.stats();
  for (const auto& [name, bytes] : stats.memory_claims) all += name == what ? bytes : 0;
  return all;
}

TEST(LoaderColumns, DeliverTheRowsOfAllArraysTogether) {
  for (const std::uint64_t memory : {kMiB, 64 * kMiB}) {
    const Pair pair(memory);
    for (const OrderKind order : {OrderKind::shuffle, OrderKind::sequential}) {
      Loader loader({*pair.x, *pair.y}, {.batch_size = 77, .order = order, .drop_last = false});
      EXPECT_EQ(claim_of(loader, "held columns"), memory == kMiB ? kRows * 8 : 0);
      for (int epoch = 0; epoch < 2; ++epoch) {
        std::set<std::uint64_t> seen;
        for (const Batch& batch : loader) {
          expect_pair(batch);
          seen.insert(batch.index().begin(), batch.index().end());
        }
        EXPECT_EQ(seen.size(), kRows);
      }
    }
  }
}

TEST(LoaderColumns, TakeRowsAndWeights) {
  const Pair pair;
  const std::vector<std::int32_t> rows{7, 4999, 7, 0};
  const std::vector<double> weights{0, 1, 3, 0};
  LoaderOptions options{.batch_size = 2, .rows = RowList(std::span(rows)), .drop_last = false};
  Loader some({*pair.x, *pair.y}, options);
  std::multiset<std::uint64_t> seen;
  for (const Batch& batch : some) {
    expect_pair(batch);
    seen.insert(batch.index().begin(), batch.index().end());
  }
  EXPECT_EQ(seen, (std::multiset<std::uint64_t>{0, 7, 7, 4999}));
  EXPECT_EQ(some.steps(), 2U);
  options.weights = weights;
  Loader drawn({*pair.x, *pair.y}, options);
  EXPECT_EQ(claim_of(drawn, "weights"), 4 * 8U);
  for (int step = 0; step < 50; ++step) {
    const Batch batch = drawn.next();
    expect_pair(batch);
    for (const std::uint64_t row : batch.index()) EXPECT_TRUE(row == 4999 || row == 7) << row;
  }
  EXPECT_EQ(thrown<std::invalid_argument>([&] {
              options.rows.reset();
              const Loader all({*pair.x, *pair.y}, options);
            }),
            "weights: there are 4, but there must be one for each of the 5000 samples");
}

TEST(LoaderColumns, AreRefusedIfTheyDoNotFitTogether) {
  const Pair pair;
  std::vector<float> few(10);
  const Array other = pair.open("few.npy", "<f4", {10}, std::span(few));
  const Array scalar = pair.open("one.npy", "<f4", {}, std::span(few).first(1));
  const LoaderOptions options{.batch_size = 2};
  const auto refusal = [&](const LoaderColumns& columns) {
    return thrown<std::invalid_argument>([&] { const Loader loader(columns, options); });
  };
  EXPECT_EQ(refusal({*pair.y, other}),
            "columns must have the same length, but column 0 has 5000 rows and column 1 has 10");
  EXPECT_EQ(refusal({}), "columns: there are none; give at least one");
  EXPECT_NE(refusal({*pair.y, scalar}).find("0-d array: it has no rows"), std::string::npos);
  EXPECT_EQ(refusal({RaggedArrays{}}), "ragged data needs an array of values");
  using Sources = std::vector<std::pair<LoaderColumns, double>>;
  const auto mixed = [&](const LoaderColumns& one, const LoaderColumns& two) {
    const Sources sources{{one, 1.0}, {two, 1.0}};
    return thrown<std::invalid_argument>([&] { const Loader loader(sources, options); });
  };
  EXPECT_EQ(mixed({*pair.x, *pair.y}, {*pair.x}),
            "source 1 of the mixture has 1 columns, but source 0 has 2");
  EXPECT_EQ(
      mixed({other}, {*pair.y}),
      "source 1 of the mixture has '<i8' rows of shape () in column 0, but source 0 has '<f4' "
      "rows of shape ()");
  // Two arrays that share their offsets, and two that have their own.
  const std::vector<std::int64_t> offsets{0, 3, 10};
  const RaggedArrays both{.values = {other, other}, .offsets = offsets};
  const RaggedArrays single{.values = {other}, .offsets = offsets};
  EXPECT_EQ(
      mixed({both}, {single, single}),
      "source 1 of the mixture has ragged columns grouped differently from source 0, at column 1");
}

TEST(LoaderColumns, RefuseOffsetsThatAreWrong) {
  const Pair pair;
  std::vector<float> values(10);
  const Array array = pair.open("v.npy", "<f4", {10}, std::span(values));
  const Array turned = Array::open(
      pair.folder.write("f.npy", npy_text("<f4", {10, 2}, std::string(80, '\0'), true)));
  const auto refusal = [](const Array& of, const std::vector<std::int64_t>& offsets) {
    const RaggedArrays ragged{.values = {of}, .offsets = offsets};
    return thrown([&] { const Loader loader(LoaderColumns{ragged}, {.batch_size = 1}); });
  };
  EXPECT_EQ(refusal(array, {0, 3, 2}), "offsets: entry 2 is 2, less than entry 1, which is 3");
  EXPECT_EQ(refusal(array, {1, 3}), "offsets: entry 0 is 1, but must be 0");
  EXPECT_EQ(refusal(array, {0, 11}), "offsets: entry 1 is 11, but there are only 10 values");
  EXPECT_EQ(refusal(array, {}), "offsets: the list is empty; it must begin with 0");
  EXPECT_NE(refusal(turned, {0, 3}).find("must be in C order, but "), std::string::npos);
}

TEST(LoaderColumns, DeliverSamplesOfDifferentLengthBesideRows) {
  const Pair pair(2 * kMiB);
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t i = 0; offsets.size() <= 1000; ++i) offsets.push_back(offsets.back() + i % 10);
  std::vector<std::int32_t> labels(1000);
  std::iota(labels.begin(), labels.end(), 0);
  const Array label = pair.open("label.npy", "<i4", {1000}, std::span(labels));
  const RaggedArrays ragged{
      .values = {*pair.y, *pair.x}, .offsets = offsets, .claim_offsets = true};
  Loader loader({label, ragged, ragged}, {.batch_size = 30, .drop_last = false});
  EXPECT_EQ(claim_of(loader, "offsets"), 2 * 1001 * 8U);
  std::set<std::uint64_t> seen;
  for (const Batch& batch : loader) {
    ASSERT_EQ(batch.columns(), 5U);
    for (const std::size_t table : {0, 1}) {
      const auto starts = batch.offsets(table);
      ASSERT_EQ(starts.size(), batch.rows() + 1);
      const auto ys = batch.as<std::int64_t>(1 + 2 * table);
      const auto xs = batch.as<float>(2 + 2 * table);
      ASSERT_EQ(ys.size(), starts.back());
      for (std::size_t i = 0; i < batch.rows(); ++i) {
        const std::uint64_t sample = batch.index()[i];
        EXPECT_EQ(batch.as<std::int32_t>(0)[i], static_cast<std::int32_t>(sample));
        ASSERT_EQ(starts[i + 1] - starts[i], sample % 10);
        for (std::uint64_t at = starts[i]; at < starts[i + 1]; ++at) {
          ASSERT_EQ(ys[at], offsets[sample] + static_cast<std::int64_t>(at - starts[i]));
          ASSERT_EQ(xs[at * kWidth], static_cast<float>(ys[at]));
        }
      }
    }
    EXPECT_TRUE(batch.offsets(2).empty());
    seen.insert(batch.index().begin(), batch.index().end());
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(LoaderColumns, GoOnInAChildWithWhatTheyHold) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not follow threads into a child";
  const Pair pair;
  for (const int delivered : {0, 3}) {  // before the held column was read, and after
    Loader loader({*pair.x, *pair.y}, {.batch_size = 500});
    ASSERT_GT(claim_of(loader, "held columns"), 0U);
    for (int step = 0; step < delivered; ++step) expect_pair(loader.next());
    const pid_t child = start_child([&] {
      int steps = delivered;
      for (const Batch& batch : loader) {
        expect_pair(batch);
        ++steps;
      }
      return testing::Test::HasFailure() || steps != 10 ? 1 : 0;
    });
    for (const Batch& batch : loader) expect_pair(batch);
    expect_success(child);
  }
}

TEST(LoaderColumns, ResumeUnderOtherSizesAndRefuseOtherData) {
  const Pair pair;
  Loader whole({*pair.x, *pair.y}, {.batch_size = 1, .seed = 3});
  std::vector<std::uint64_t> order;
  for (const Batch& batch : whole) order.push_back(batch.index()[0]);
  Loader first({*pair.x, *pair.y}, {.batch_size = 100, .seed = 3});
  for (int step = 0; step < 7; ++step) (void)first.next();
  const State state = first.state();
  Loader rest({*pair.x, *pair.y}, {.batch_size = 43, .seed = 3, .rank = 1, .world_size = 2});
  rest.restore(state);
  const Batch batch = rest.next();
  expect_pair(batch);
  EXPECT_TRUE(std::ranges::equal(batch.index(), std::span(order).subspan(743, 43)));
  for (const LoaderColumns& other :
       {LoaderColumns{*pair.x}, LoaderColumns{*pair.y, *pair.x}, LoaderColumns{*pair.y}}) {
    Loader refusing(other, {.batch_size = 43, .seed = 3});
    EXPECT_NE(thrown<std::invalid_argument>([&] { refusing.restore(state); }).find("data differs"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lowtide::loader_columns_test
