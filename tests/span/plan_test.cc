#include "span/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "os/temp_folder.h"

namespace lowtide::plan_test {
namespace {

// 32-bit numbers of one seed.
struct Dice {
  explicit Dice(std::uint32_t seed) : engine(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine()); }
  std::mt19937 engine;
};

Read make_read(std::uint64_t offset_bytes, std::uint32_t size_bytes, std::uint32_t shard = 0,
               std::byte* into = nullptr) {
  return {.from = {.offset_bytes = offset_bytes, .size_bytes = size_bytes, .shard = shard},
          .into = into};
}

std::vector<Span> spans_of(SpanPlan& plan, const std::vector<Read>& reads, PlanLimits limits) {
  std::vector<Span> spans;
  plan.start(reads, limits);
  for (Span span; plan.next(&span);) spans.push_back(span);
  return spans;
}

// The obvious way: sorted, joined while the rule allows, reads that are too long cut by themselves.
std::vector<std::pair<std::uint64_t, std::uint64_t>> slow_twin(std::vector<Read> reads,
                                                               PlanLimits limits) {
  std::stable_sort(reads.begin(), reads.end(), [](const Read& a, const Read& b) {
    return std::pair(a.from.shard, a.from.offset_bytes) <
           std::pair(b.from.shard, b.from.offset_bytes);
  });
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      spans;  // begin and end, shard in the high bits
  constexpr unsigned kShardShift = 48;
  bool open = false;
  for (const Read& read : reads) {
    const std::uint64_t base = std::uint64_t{read.from.shard} << kShardShift;
    const std::uint64_t begin = base + read.from.offset_bytes, end = base + read.from.end_bytes();
    if (read.from.size_bytes > limits.max_span_bytes) {
      spans.emplace_back(begin, end);
      open = false;
      continue;
    }
    if (open) {
      auto& [first, last] = spans.back();
      const std::uint64_t reach = std::max(last, end);
      if (first >> kShardShift == read.from.shard && begin <= last + limits.gap_bytes &&
          reach - first <= limits.max_span_bytes) {
        last = reach;
        continue;
      }
    }
    spans.emplace_back(begin, end);
    open = true;
  }
  return spans;
}

TEST(SpanPlan, MergesLikeItsSlowTwin) {
  Dice random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<Read> reads;
    const std::uint32_t most_size = round % 3 == 0 ? 20'000 : 700;
    for (std::uint32_t i = 0, count = 1 + random() % 60; i < count; ++i) {
      // Distinct offsets: reads that start together may be planned in either order.
      reads.push_back(make_read(random() % 3000 * 64 + i, 1 + random() % most_size, random() % 3));
    }
    const PlanLimits limits{.merge = true,
                            .gap_bytes = static_cast<std::uint32_t>(random() % 2000),
                            .max_span_bytes = 8192};
    SpanPlan plan;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> joined;
    for (const Span& span : spans_of(plan, reads, limits)) {
      const std::uint64_t base = std::uint64_t{span.shard} << 48;
      const auto piece = std::pair(base + span.offset_bytes, base + span.end_bytes());
      // The parts of a split read are one in the twin.
      const bool goes_on = std::any_of(reads.begin(), reads.end(), [&](const Read& read) {
        return read.from.shard == span.shard && read.from.size_bytes > limits.max_span_bytes &&
               !joined.empty() && base + read.from.offset_bytes == joined.back().first &&
               joined.back().second == piece.first && read.from.end_bytes() >= span.end_bytes();
      });
      if (goes_on) {
        joined.back().second = piece.second;
      } else {
        joined.push_back(piece);
      }
    }
    EXPECT_EQ(joined, slow_twin(reads, limits)) << "round " << round;
  }
}

TEST(SpanPlan, PlacesEveryByteOfEveryRead) {
  const std::string held[] = {pattern(100'000, 1), pattern(100'000, 2)};
  Dice random(2);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 50;
    std::vector<std::string> targets(count);
    std::vector<Read> reads;
    for (std::string& target : targets) {
      const std::uint32_t size = 1 + random() % (round % 2 == 0 ? 300 : 30'000);
      target.assign(size, '\0');
      reads.push_back(make_read(random() % (100'000 - size), size, random() % 2,
                                reinterpret_cast<std::byte*>(target.data())));
      if (random() % 5 == 0) reads.back().from.offset_bytes = reads.front().from.offset_bytes;
      if (reads.back().from.end_bytes() > 100'000) reads.back().from.offset_bytes = 100'000 - size;
    }
    const PlanLimits limits{.merge = round % 4 != 0, .gap_bytes = 500, .max_span_bytes = 4096};
    SpanPlan plan;
    for (const Span& span : spans_of(plan, reads, limits)) {
      ASSERT_LE(span.size_bytes, limits.max_span_bytes);
      ASSERT_LE(span.end_bytes(), 100'000U);
      const char* from = held[span.shard].data() + span.offset_bytes;
      if (std::byte* straight = plan.target(span)) {
        ASSERT_EQ(span.last - span.first, 1U);
        std::memcpy(straight, from, span.size_bytes);
      } else {
        plan.place(span, reinterpret_cast<const std::byte*>(from));
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Extent& from = reads[i].from;
      ASSERT_EQ(targets[i], held[from.shard].substr(from.offset_bytes, from.size_bytes)) << i;
    }
  }
}

TEST(SpanPlan, GivesSpansInFileOrder) {
  Dice random(3);
  std::vector<Read> reads;
  for (int i = 0; i < 1000; ++i)
    reads.push_back(make_read(random() % 10'000'000, 10, random() % 4));
  SpanPlan plan;
  const std::vector<Span> spans = spans_of(plan, reads, {.merge = true, .gap_bytes = 0});
  for (std::size_t i = 1; i < spans.size(); ++i) {
    EXPECT_LT(std::pair(spans[i - 1].shard, spans[i - 1].offset_bytes),
              std::pair(spans[i].shard, spans[i].offset_bytes));
  }
}

TEST(SpanPlan, LeavesTheReadsAsTheyCameWithoutMerging) {
  const std::vector<Read> reads{make_read(5000, 10), make_read(0, 10), make_read(10, 10)};
  SpanPlan plan;
  const std::vector<Span> spans = spans_of(plan, reads, {.merge = false});
  ASSERT_EQ(spans.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(spans[i].offset_bytes, reads[i].from.offset_bytes);
  }
  EXPECT_EQ(plan.merged(), 0U);
}

TEST(SpanPlan, SplitsALongReadOnBoundariesOfItsAlignment) {
  const std::vector<Read> reads{make_read(100, 3'000'000)};
  SpanPlan plan;
  const std::vector<Span> spans = spans_of(plan, reads, {.max_span_bytes = 512 * 1024});
  ASSERT_EQ(spans.size(), 6U);
  std::uint64_t at = 100;
  for (const Span& span : spans) {
    EXPECT_EQ(span.offset_bytes, at);
    EXPECT_LE(span.size_bytes, 512U * 1024);
    at = span.end_bytes();
    EXPECT_TRUE(at % 4096 == 0 || at == 3'000'100) << at;
  }
  EXPECT_EQ(at, 3'000'100U);
}

TEST(SpanPlan, CountsTheReadsThatMergingSaved) {
  const std::vector<Read> reads{make_read(0, 10), make_read(10, 10), make_read(21, 10),
                                make_read(33, 10)};
  SpanPlan plan;
  EXPECT_EQ(spans_of(plan, reads, {.gap_bytes = 1}).size(), 2U);
  EXPECT_EQ(plan.merged(), 2U);
  EXPECT_EQ(spans_of(plan, reads, {.gap_bytes = 0}).size(), 3U) << "a plan can be started again";
  EXPECT_EQ(plan.merged(), 1U);
}

TEST(SpanPlan, NamesTheReadThatAByteBelongsTo) {
  const std::vector<Read> reads{make_read(200, 10), make_read(100, 10), make_read(0, 10)};
  SpanPlan plan;
  const std::vector<Span> spans = spans_of(plan, reads, {.gap_bytes = 1000});
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(plan.culprit(spans[0], 0), 2U);
  EXPECT_EQ(plan.culprit(spans[0], 9), 2U);
  EXPECT_EQ(plan.culprit(spans[0], 10), 1U) << "in a gap: the read behind it";
  EXPECT_EQ(plan.culprit(spans[0], 205), 0U);
}

TEST(SpanPlan, KnowsWhetherReadsAreSorted) {
  EXPECT_TRUE(SpanPlan::sorted({}));
  const std::vector<Read> up{make_read(0, 10), make_read(0, 5), make_read(7, 5),
                             make_read(0, 5, 1)};
  EXPECT_TRUE(SpanPlan::sorted(up));
  const std::vector<Read> down{make_read(1, 10), make_read(0, 5)};
  EXPECT_FALSE(SpanPlan::sorted(down));
  const std::vector<Read> shards{make_read(0, 10, 1), make_read(5, 5, 0)};
  EXPECT_FALSE(SpanPlan::sorted(shards));
}

TEST(SpanPlan, KnowsTheAverageDistanceOfSortedReads) {
  const auto distance = [](const std::vector<Extent>& extents) {
    std::vector<Read> reads;
    for (const Extent& extent : extents) reads.push_back({.from = extent, .into = nullptr});
    return SpanPlan::sorted_distance(reads);
  };
  EXPECT_EQ(distance({{.offset_bytes = 7, .size_bytes = 10}}), 10U);
  EXPECT_EQ(
      distance({{.offset_bytes = 0, .size_bytes = 10}, {.offset_bytes = 100, .size_bytes = 10}}),
      55U);
  EXPECT_EQ(
      distance({{.offset_bytes = 100, .size_bytes = 10}, {.offset_bytes = 0, .size_bytes = 10}}),
      std::nullopt);
  EXPECT_EQ(distance({{.offset_bytes = 900, .size_bytes = 10, .shard = 0},
                      {.offset_bytes = 0, .size_bytes = 10, .shard = 1}}),
            10U)
      << "nothing is between two shards";
  EXPECT_EQ(distance({{.offset_bytes = 0, .size_bytes = 10, .shard = 1},
                      {.offset_bytes = 900, .size_bytes = 10, .shard = 0}}),
            std::nullopt);
}

TEST(SpanPlan, PlacesPartsOfASpanLikeTheWhole) {
  Dice random(7);
  std::vector<std::byte> file(50'000);
  for (std::byte& byte : file) byte = static_cast<std::byte>(random());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<std::byte>> targets;
    std::vector<Read> reads;
    for (std::uint32_t i = 0; i < 1 + random() % 30; ++i) {
      const std::uint32_t size = 1 + random() % (i % 5 == 0 ? 20'000 : 300);
      targets.emplace_back(size);
      reads.push_back(make_read(random() % (file.size() - size), size, 0, targets.back().data()));
    }
    SpanPlan plan;
    const PlanLimits limits{.gap_bytes = random() % 5000, .max_span_bytes = 8192};
    for (const Span& span : spans_of(plan, reads, limits)) {
      std::uint32_t cursor = 0;
      for (std::uint64_t at = span.offset_bytes; at < span.end_bytes();) {
        const std::uint64_t size =
            std::min<std::uint64_t>(1 + random() % 700, span.end_bytes() - at);
        plan.place_part(span, at, std::span(file).subspan(at, size), &cursor);
        at += size;
      }
    }
    for (const Read& read : reads) {
      ASSERT_EQ(std::memcmp(read.into, file.data() + read.from.offset_bytes, read.from.size_bytes),
                0);
    }
  }
}

}  // namespace
}  // namespace lowtide::plan_test
