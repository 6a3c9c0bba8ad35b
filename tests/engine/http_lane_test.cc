// Objects on servers, as an engine reads them: few requests, no bytes but those of the object, and
// what goes wrong as an Outcome that says what the server answered.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/budget.h"
#include "engine/engine.h"
#include "engine/outcome.h"
#include "http/transport.h"
#include "lowtide/error.h"
#include "support/data_file.h"
#include "support/http_rig.h"
#include "support/http_server.h"
#include "support/read_rig.h"
#include "support/thrown.h"

namespace lowtide::http_lane_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

class HttpLaneTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
  [[nodiscard]] static Shard shard(const HttpServer& server, std::uint64_t size) {
    const std::string url = server.url("/o.bin");
    return {url, size, /*version=*/1, remote_at(url + "?secret=1")};
  }
  [[nodiscard]] static std::unique_ptr<Engine> open(std::vector<Shard> shards, Budget& budget,
                                                    ReadOptions options = {}) {
    options.cache = CacheMode::keep;
    return open_engine(std::make_shared<Files>(std::move(shards)), options, budget,
                       /*allow_memory=*/false);
  }
  const std::string held_ = pattern(4 * kMiB + 123);
  Budget budget_{64 * kMiB};
};

TEST_F(HttpLaneTest, MergesNeighboursAndCountsWhatItAskedFor) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const auto engine = open({shard(server, held_.size())}, budget_);
  const CheckedReads wanted(rows_apart(1000, 100, 4000));
  ASSERT_TRUE(engine->read(wanted.reads()).ok());
  wanted.expect_bytes({&held_});
  EXPECT_LE(server.requests(), 4) << "4 MB with gaps of less than 4 KiB";
  EXPECT_EQ(engine->traffic().reads, static_cast<std::uint64_t>(server.requests()));
  EXPECT_GE(engine->traffic().merged, 996U);
  EXPECT_EQ(engine->name(), "http");
  EXPECT_GT(engine->prospect().gap_bytes, 64U * 1024);
  EXPECT_FALSE(engine->prospect().resident);
}

TEST_F(HttpLaneTest, AsksForEachRowWhereTheGapIsZero) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const auto engine = open({shard(server, held_.size())}, budget_, {.gap_bytes = 0});
  const CheckedReads wanted(rows_apart(300, 100, 4000));
  ASSERT_TRUE(engine->read(wanted.reads()).ok());
  wanted.expect_bytes({&held_});
  EXPECT_GE(server.requests(), 300);
  EXPECT_LE(server.requests(), 300 + 300 / 20 + 1) << "hedges";
}

TEST_F(HttpLaneTest, NeverHasMoreInFlightThanAsked) {
  std::atomic<int> now{0}, most{0};
  HttpServer server([&](const auto& request) {
    const int here = ++now;
    for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --now;
    return whole_answer(request, held_);
  });
  const auto engine = open({shard(server, held_.size())}, budget_, {.gap_bytes = 0, .requests = 3});
  const CheckedReads wanted(rows_apart(60, 100, 4000));
  ASSERT_TRUE(engine->read(wanted.reads()).ok());
  EXPECT_LE(most, 3 + 3) << "and a hedge for one in twenty";
}

TEST_F(HttpLaneTest, JoinsObjectsAndLocalFiles) {
  const TempFolder folder;
  const std::string near = pattern(kMiB, 7);
  const std::string path = folder.write("near.bin", near);
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const auto engine = open({shard(server, held_.size()), File(path).shard()}, budget_);
  std::vector<Extent> extents;
  for (std::uint32_t i = 0; i < 200; ++i) {
    extents.push_back({.offset_bytes = i * 5000, .size_bytes = 700, .shard = i % 2});
  }
  const CheckedReads wanted(extents);
  ASSERT_TRUE(engine->read(wanted.reads()).ok());
  wanted.expect_bytes({&held_, &near});
  EXPECT_TRUE(engine->name().starts_with("http+")) << engine->name();
  const CheckedReads local({{.offset_bytes = 0, .size_bytes = 10, .shard = 1}});
  const int before = server.requests();
  ASSERT_TRUE(engine->read(local.reads()).ok());
  EXPECT_EQ(server.requests(), before);
}

TEST_F(HttpLaneTest, RefusesEnginesThatReadLocalFiles) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  for (const EngineKind kind : {EngineKind::pread, EngineKind::uring}) {
    const auto error = caught<IoError>(
        [&] { (void)open({shard(server, held_.size())}, budget_, {.engine = kind}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->err, ENOTSUP);
  }
}

TEST_F(HttpLaneTest, ReportsAFailureWithTheReadThatMetIt) {
  HttpServer server([&](const ServedRequest& request) {
    if (request.range()->second >= 3 * kMiB) return ServedAnswer{.status = 404, .body = "gone"};
    return whole_answer(request, held_);
  });
  const auto engine = open({shard(server, held_.size())}, budget_, {.gap_bytes = 0});
  const CheckedReads wanted({{.offset_bytes = 0, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 3 * kMiB, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 5000, .size_bytes = 648, .shard = 0}});
  const Outcome outcome = engine->read(wanted.reads());
  EXPECT_EQ(outcome.err, ENOENT);
  EXPECT_EQ(outcome.read, 1U);
  EXPECT_EQ(outcome.http.status, 404);
  const std::string text = thrown<IoError>([&] {
    throw_outcome(outcome, wanted.reads()[outcome.read], server.url("/o.bin"), "epoch 0, step 3");
  });
  for (const char* word : {"/o.bin", "bytes 3145728-3146375", "404", "epoch 0, step 3"}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST_F(HttpLaneTest, ReportsAnObjectThatChangedOrShrank) {
  std::atomic<bool> shrank = false;
  HttpServer server([&](const ServedRequest& request) {
    return shrank ? whole_answer(request, held_.substr(0, kMiB))
                  : whole_answer(request, held_, "\"v2\"");
  });
  const auto engine = open({shard(server, held_.size())}, budget_);
  const CheckedReads wanted(rows_apart(10, 648, 300'000));
  Outcome outcome = engine->read(wanted.reads());
  EXPECT_EQ(outcome.err, ESTALE);
  EXPECT_EQ(outcome.http.fault, HttpFault::changed);
  shrank = true;
  outcome = engine->read(wanted.reads());
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.err, 0);
  EXPECT_EQ(outcome.found_bytes, kMiB);
}

TEST_F(HttpLaneTest, ServesEverySetWhileSomeRequestsFail) {
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_);
    if (request.number % 10 == 3) return ServedAnswer{.status = 503, .body = "slow down"};
    if (request.number % 10 == 7) answer.stop_after = answer.body.size() / 2;
    return answer;
  });
  const auto engine = open({shard(server, held_.size())}, budget_, {.gap_bytes = 2000});
  std::vector<std::unique_ptr<CheckedReads>> wanted;
  std::vector<std::unique_ptr<WaitedSet>> sets;
  for (std::uint32_t i = 0; i < 8; ++i) {
    wanted.push_back(std::make_unique<CheckedReads>(rows_apart(40, 500 + i, 90'000)));
    sets.push_back(std::make_unique<WaitedSet>(wanted.back()->reads()));
    engine->submit(*sets.back());
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    ASSERT_TRUE(sets[i]->wait().ok());
    wanted[i]->expect_bytes({&held_});
    EXPECT_EQ(sets[i]->times(), 1);
  }
}

TEST_F(HttpLaneTest, ClosesWhileAServerIsSilentAndTheMemoryIsBeingFilled) {
  std::atomic<int> asked = 0;
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_);
    ++asked;
    answer.delay = std::chrono::milliseconds(60'000);
    return answer;
  });
  auto engine = open({shard(server, held_.size())}, budget_, {.engine = EngineKind::memory});
  while (asked == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  engine.reset();  // would wait for half a minute
  EXPECT_EQ(engine, nullptr);
}

TEST_F(HttpLaneTest, EndsACancelledSetWhileTheServerIsSilent) {
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_);
    answer.delay = std::chrono::milliseconds(60'000);
    return answer;
  });
  const auto engine = open({shard(server, held_.size())}, budget_, {.gap_bytes = 0});
  const CheckedReads wanted(rows_apart(50, 648, 70'000));
  WaitedSet set(wanted.reads());
  engine->submit(set);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  set.cancel();
  EXPECT_TRUE(set.wait().cancelled);
  EXPECT_EQ(set.times(), 1);
}

}  // namespace
}  // namespace lowtide::http_lane_test
