// Objects with copies on a local disk: the same bytes as from the server, each block asked for
// once.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/budget.h"
#include "engine/engine.h"
#include "http/transport.h"
#include "os/paths.h"
#include "os/sys.h"
#include "support/data_file.h"
#include "support/http_rig.h"
#include "support/http_server.h"
#include "support/read_rig.h"

namespace lowtide::tiered_engine_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

class TieredEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
  [[nodiscard]] std::unique_ptr<Engine> open(ReadOptions options = {}) {
    options.cache = CacheMode::drop;
    options.cache_dir = folder_.path() + "/cache";
    const std::string url = server_.url("/o.bin");
    std::vector<Shard> shards{{url, held_.size(), /*version=*/1, remote_at(url + "?secret=1")}};
    return open_engine(std::make_shared<Files>(std::move(shards)), options, budget_,
                       /*allow_memory=*/false);
  }
  void expect_read(Engine& engine, const std::vector<Extent>& extents) {
    const CheckedReads wanted(extents);
    ASSERT_TRUE(engine.read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
  }
  // Waits until the blocks that were delivered are kept, too.
  static void wait_for(Engine& engine, const std::string& reason) {
    for (int i = 0; i < 2000 && !engine.reason().starts_with(reason); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(engine.reason().starts_with(reason)) << engine.reason();
  }

  const TempFolder folder_;
  const std::string held_ = pattern(6 * kMiB + 123);
  std::atomic<int> status_ = 206;
  std::atomic<int> delay_ms_ = 0;
  HttpServer server_{[this](const ServedRequest& request) {
    if (status_ != 206) return ServedAnswer{.status = status_, .body = "no"};
    ServedAnswer answer = whole_answer(request, held_);
    answer.delay = std::chrono::milliseconds(delay_ms_);
    return answer;
  }};
  Budget budget_{64 * kMiB};
};

TEST_F(TieredEngineTest, TheSecondTimeNothingIsAskedFor) {
  const auto engine = open();
  EXPECT_EQ(engine->name().substr(0, 11), "http+cache+");
  const std::vector<Extent> rows = rows_apart(600, 700, 10'000);
  expect_read(*engine, rows);
  wait_for(*engine, "6 of 7 MiB");
  const int asked = server_.requests();
  EXPECT_GE(asked, 6);
  EXPECT_LE(asked, 8) << "a block is one request; one in twenty may be sent twice";
  expect_read(*engine, rows);
  expect_read(*engine, {{.offset_bytes = kMiB - 5, .size_bytes = 10, .shard = 0}});
  EXPECT_EQ(server_.requests(), asked);
  expect_read(*engine, {{.offset_bytes = 6 * kMiB, .size_bytes = 123, .shard = 0}});
  wait_for(*engine, "7 of 7 MiB");
  EXPECT_EQ(engine->name().substr(0, 6), "cache+");
}

TEST_F(TieredEngineTest, AnotherProcessFindsTheCopies) {
  const std::vector<Extent> rows = rows_apart(600, 700, 10'000);
  {
    const auto first = open();
    expect_read(*first, rows);
    wait_for(*first, "6 of 7 MiB");
  }
  const int asked = server_.requests();
  const auto second = open();
  expect_read(*second, rows);
  EXPECT_EQ(server_.requests(), asked);
}

TEST_F(TieredEngineTest, ManySetsAtOnceShareTheirBlocks) {
  const auto engine = open();
  std::vector<std::unique_ptr<CheckedReads>> wanted;
  std::vector<std::unique_ptr<WaitedSet>> sets;
  for (std::uint32_t i = 0; i < 16; ++i) {
    wanted.push_back(std::make_unique<CheckedReads>(rows_apart(100, 500 + i, 61'000)));
    sets.push_back(std::make_unique<WaitedSet>(wanted.back()->reads()));
    engine->submit(*sets.back());
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    ASSERT_TRUE(sets[i]->wait().ok());
    wanted[i]->expect_bytes({&held_});
    EXPECT_EQ(sets[i]->times(), 1);
  }
  EXPECT_LE(server_.requests(), 9);
}

TEST_F(TieredEngineTest, ReadsOnFromTheServerWhenCopiesVanish) {
  const auto engine = open();
  const std::vector<Extent> rows = rows_apart(600, 700, 10'000);
  expect_read(*engine, rows);
  wait_for(*engine, "6 of 7 MiB");
  for (const std::string& name : list_folder(folder_.path() + "/cache")) {
    if (name.ends_with(".data") || name.ends_with(".blocks"))
      std::filesystem::remove(folder_.path() + "/cache/" + name);
  }
  expect_read(*engine, rows);
}

TEST_F(TieredEngineTest, ReadsOnFromTheServerWhenTheFolderIsFull) {
  const auto engine = open({.cache_bytes = 2 * kMiB});
  const std::vector<Extent> rows = rows_apart(600, 700, 10'000);
  expect_read(*engine, rows);
  for (int i = 0; i < 2000 && engine->reason().find("full") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NE(engine->reason().find("no more are kept: the cache folder is full"), std::string::npos)
      << engine->reason();
  expect_read(*engine, rows);
  std::uint64_t bytes = 0;
  for (const std::string& name : list_folder(folder_.path() + "/cache"))
    bytes += disk_bytes(folder_.path() + "/cache/" + name);
  EXPECT_LE(bytes, 2 * kMiB + 64 * 1024);
}

TEST_F(TieredEngineTest, ReadsOnFromTheServerWhenTheDiskFails) {
  const auto engine = open();
  const auto fails = [](int, const void*, std::size_t, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  const sys::Fault<decltype(sys::table.pwrite)> fault(sys::table.pwrite, fails);
  expect_read(*engine, rows_apart(600, 700, 10'000));
  expect_read(*engine, rows_apart(600, 700, 10'000));
  EXPECT_NE(engine->reason().find("no more are kept"), std::string::npos) << engine->reason();
}

TEST_F(TieredEngineTest, ReportsWhatTheServerAnswered) {
  const auto engine = open();
  status_ = 404;
  const CheckedReads wanted({{.offset_bytes = 10, .size_bytes = 20, .shard = 0},
                             {.offset_bytes = 3 * kMiB, .size_bytes = 20, .shard = 0}});
  const Outcome outcome = engine->read(wanted.reads());
  EXPECT_EQ(outcome.err, ENOENT);
  EXPECT_EQ(outcome.http.status, 404);
  EXPECT_LT(outcome.read, 2U);
  status_ = 206;
  expect_read(*engine, rows_apart(10, 700, 600'000));
}

TEST_F(TieredEngineTest, EndsACancelledSetAndServesTheNextOne) {
  const auto engine = open();
  delay_ms_ = 60'000;
  const CheckedReads wanted(rows_apart(6, 648, kMiB));
  WaitedSet set(wanted.reads());
  engine->submit(set);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  set.cancel();
  EXPECT_TRUE(set.wait().cancelled);
  delay_ms_ = 0;
  expect_read(*engine, rows_apart(6, 648, kMiB));
}

TEST_F(TieredEngineTest, AReadBeyondTheObjectIsAnErrorAndKeepsNothing) {
  const auto engine = open();
  const CheckedReads wanted({{.offset_bytes = 6 * kMiB + 100, .size_bytes = 100, .shard = 0}});
  EXPECT_FALSE(engine->read(wanted.reads()).ok());
  EXPECT_TRUE(engine->reason().starts_with("0 of 7 MiB")) << engine->reason();
}

}  // namespace
}  // namespace lowtide::tiered_engine_test
