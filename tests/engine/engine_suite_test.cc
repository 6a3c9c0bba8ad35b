// Every engine gives the bytes that a plain pread gives, for every cache mode and every place of
// the rows.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/engine.h"
#include "http/transport.h"
#include "support/data_file.h"
#include "support/http_rig.h"
#include "support/http_server.h"
#include "support/read_rig.h"

namespace lowtide::engine_suite_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kPlenty = 64 * kMiB;
constexpr std::uint64_t kFileBytes = 10 * kMiB + 777;  // ends inside a sector

using Case = std::tuple<EngineCase, std::uint64_t>;  // and the header's bytes

class EngineSuite : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    held_ = pattern(kFileBytes);
    path_ = folder_->write("data.bin", held_);
    server_ = std::make_unique<HttpServer>(
        [](const ServedRequest& request) { return whole_answer(request, held_); });
  }
  static void TearDownTestSuite() {
    folder_.reset();
    server_.reset();
  }

  void SetUp() override {
    std::tie(which_, header_bytes_) = GetParam();
    if (const std::string why = why_not(which_.kind); !why.empty()) GTEST_SKIP() << why;
    const std::string no_http = which_.remote ? Transport::probe() : "";
    if (!no_http.empty()) GTEST_SKIP() << "no http: " << no_http;
  }

  [[nodiscard]] EngineRig rig(std::uint64_t budget_bytes = kPlenty) const {
    if (!which_.remote) return {files_of({path_}), which_, budget_bytes};
    const std::string url = server_->url("/data.bin");
    return {std::make_shared<Files>(
                std::vector<Shard>{{url, held_.size(), /*version=*/1, remote_at(url)}}),
            which_, budget_bytes};
  }
  [[nodiscard]] std::uint64_t rows_of(std::uint64_t row_bytes) const {
    return (kFileBytes - header_bytes_) / row_bytes;
  }
  [[nodiscard]] Extent row(std::uint64_t index, std::uint64_t row_bytes) const {
    return {.offset_bytes = header_bytes_ + index * row_bytes,
            .size_bytes = static_cast<std::uint32_t>(row_bytes),
            .shard = 0};
  }
  // `count` rows in no order, some twice, the first and the last among them.
  [[nodiscard]] std::vector<Extent> some_rows(std::uint64_t row_bytes, std::size_t count) const {
    std::mt19937_64 random(row_bytes);
    std::vector<Extent> extents{row(rows_of(row_bytes) - 1, row_bytes), row(0, row_bytes)};
    while (extents.size() < count) {
      extents.push_back(row(random() % rows_of(row_bytes), row_bytes));
      if (extents.size() % 7 == 0) extents.push_back(extents.back());
    }
    return extents;
  }
  // Both ways into an engine.
  static void check(Engine& engine, const std::vector<Extent>& extents) {
    const CheckedReads here(extents);
    ASSERT_TRUE(engine.read(here.reads()).ok());
    here.expect_bytes({&held_});
    const CheckedReads there(extents);
    WaitedSet set(there.reads());
    engine.submit(set);
    ASSERT_TRUE(set.wait().ok());
    there.expect_bytes({&held_});
  }

  static inline std::unique_ptr<TempFolder> folder_;
  static inline std::unique_ptr<HttpServer> server_;
  static inline std::string held_, path_;
  EngineCase which_;
  std::uint64_t header_bytes_ = 0;
};

TEST_P(EngineSuite, GivesRowsOfEverySizeFromTheDiskAndFromTheCache) {
  for (const bool cold : {true, false}) {
    cold ? evict(path_) : warm(path_, 0, kFileBytes);
    const EngineRig rig = this->rig();
    for (const std::uint64_t row_bytes : {1, 7, 512, 648, 4096, 70 * 1024, 3 * 1024 * 1024}) {
      const std::size_t count = row_bytes > 100'000 ? 4 : row_bytes > 4096 ? 40 : 400;
      SCOPED_TRACE(std::to_string(row_bytes) + (cold ? " B rows, cold" : " B rows, hot"));
      check(*rig.engine, some_rows(row_bytes, count));
      std::vector<Extent> run;
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(3, rows_of(row_bytes)); ++i) {
        run.push_back(row(i, row_bytes));
      }
      check(*rig.engine, run);
    }
  }
}

TEST_P(EngineSuite, GivesOverlapsAndTheLastBytesOfTheFile) {
  for (const bool cold : {true, false}) {
    cold ? evict(path_) : warm(path_, 0, kFileBytes);
    const EngineRig rig = this->rig();
    std::vector<Extent> extents;
    for (std::uint32_t size = 1; size < 5000; size = size * 2 + 1) {
      extents.push_back({.offset_bytes = kFileBytes - size, .size_bytes = size, .shard = 0});
      extents.push_back({.offset_bytes = header_bytes_ + 511, .size_bytes = size, .shard = 0});
      extents.push_back({.offset_bytes = header_bytes_ + size, .size_bytes = 2 * size, .shard = 0});
    }
    extents.push_back({.offset_bytes = header_bytes_, .size_bytes = 2 * kMiB + 5, .shard = 0});
    extents.push_back({.offset_bytes = header_bytes_ + 77, .size_bytes = 10, .shard = 0});
    check(*rig.engine, extents);
    check(*rig.engine, {{.offset_bytes = kFileBytes - 1, .size_bytes = 1, .shard = 0}});
  }
}

TEST_P(EngineSuite, WorksUnderTinyBudgets) {
  if (which_.kind == EngineKind::memory)
    GTEST_SKIP() << "the memory engine needs room for the data";
  for (const std::uint64_t budget_bytes : {64 * 1024UL, 1024 * 1024UL}) {
    evict(path_);
    const EngineRig rig = this->rig(budget_bytes);
    for (const std::uint64_t row_bytes : {1, 648, 70 * 1024, 1024 * 1024}) {
      SCOPED_TRACE(std::to_string(row_bytes) + " B rows, " + std::to_string(budget_bytes));
      check(*rig.engine, some_rows(row_bytes, row_bytes > 4096 ? 6 : 300));
    }
    EXPECT_LE(rig.budget.limit_bytes() - rig.budget.free_bytes(), budget_bytes);
  }
}

TEST_P(EngineSuite, ServesSetsOfSeveralThreadsAtOnce) {
  evict(path_);
  const EngineRig rig = this->rig();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::unique_ptr<CheckedReads>> wanted;
      std::vector<std::unique_ptr<WaitedSet>> sets;
      for (std::uint64_t i = 0; i < 6; ++i) {
        wanted.push_back(std::make_unique<CheckedReads>(some_rows(300 + 77 * t + i, 60)));
        sets.push_back(std::make_unique<WaitedSet>(wanted.back()->reads()));
        rig.engine->submit(*sets.back());
      }
      for (std::size_t i = 0; i < sets.size(); ++i) {
        if (!sets[i]->wait().ok()) ++failures;
        wanted[i]->expect_bytes({&held_});
        const CheckedReads more(some_rows(4000 + i, 5));
        if (!rig.engine->read(more.reads()).ok()) ++failures;
        more.expect_bytes({&held_});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(EngineSuite, TakesSetsOfTheMostReadsAndReadsOfAnyNumber) {
  evict(path_);
  const EngineRig rig = this->rig();
  const CheckedReads most(some_rows(100, Engine::kMaxReads));
  WaitedSet set(most.reads().first(Engine::kMaxReads));
  rig.engine->submit(set);
  ASSERT_TRUE(set.wait().ok());
  EXPECT_EQ(set.times(), 1);
  const CheckedReads more(some_rows(33, 2 * Engine::kMaxReads + 100));
  ASSERT_TRUE(rig.engine->read(more.reads()).ok());
  more.expect_bytes({&held_});
  EXPECT_TRUE(rig.engine->read({}).ok()) << "nothing to read";
}

TEST_P(EngineSuite, EndsACancelledSetOnceAndSoon) {
  evict(path_);
  const EngineRig rig = this->rig();
  std::vector<std::unique_ptr<CheckedReads>> wanted;
  std::vector<std::unique_ptr<WaitedSet>> sets;
  for (int i = 0; i < 8; ++i) {
    wanted.push_back(std::make_unique<CheckedReads>(some_rows(648, 500)));
    sets.push_back(std::make_unique<WaitedSet>(wanted.back()->reads()));
    if (i % 3 == 0) sets.back()->cancel();
    rig.engine->submit(*sets.back());
    if (i % 3 == 1) sets.back()->cancel();
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Outcome outcome = sets[i]->wait();
    EXPECT_TRUE(outcome.ok() || (outcome.cancelled && i % 3 != 2)) << i;
    if (outcome.ok()) wanted[i]->expect_bytes({&held_});
  }
  for (const auto& set : sets) EXPECT_EQ(set->times(), 1);
}

std::vector<EngineCase> every_engine_and_server() {
  std::vector<EngineCase> cases = every_engine();
  cases.push_back({EngineKind::automatic, CacheMode::keep, /*remote=*/true});
  cases.push_back({EngineKind::memory, CacheMode::keep, /*remote=*/true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryEngine, EngineSuite,
                         testing::Combine(testing::ValuesIn(every_engine_and_server()),
                                          testing::Values(std::uint64_t{0}, std::uint64_t{1},
                                                          std::uint64_t{128}, std::uint64_t{511},
                                                          std::uint64_t{4097})),
                         [](const testing::TestParamInfo<Case>& one) {
                           return std::get<0>(one.param).name() + "_header" +
                                  std::to_string(std::get<1>(one.param));
                         });

}  // namespace
}  // namespace lowtide::engine_suite_test
