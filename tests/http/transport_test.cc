// Ranges arrive whole and exact, over connections that are kept.
#include "http/transport.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/data_file.h"
#include "support/forked.h"
#include "support/http_rig.h"
#include "support/http_server.h"

namespace lowtide::transport_test {
namespace {

class TransportRanges : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
  const std::string held_ = pattern(1'000'003);
};

TEST_F(TransportRanges, ArriveByteForByte) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  Transport transport(quick());
  const auto object = remote_at(server.url("/o"));
  for (const auto& [offset, size] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 1}, {0, 1'000'003}, {999'999, 4}, {1'000'002, 1}, {12'345, 65'536}, {7, 300'000}}) {
    Fetched fetched(object, offset, size, held_.size());
    transport.submit(fetched);
    ASSERT_TRUE(fetched.wait().ok());
    EXPECT_EQ(fetched.bytes, held_.substr(offset, size));
    EXPECT_EQ(fetched.taken, size) << "each byte once";
  }
  EXPECT_EQ(server.connections(), 1) << "kept";
  EXPECT_EQ(transport.counts().requests, 6U);
}

TEST_F(TransportRanges, AreAskedForWithTheVersionAndNeverCompressed) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  Transport transport(quick());
  Fetched fetched(remote_at(server.url("/a%20b?q=1")), 10, 20, held_.size());
  transport.submit(fetched);
  ASSERT_TRUE(fetched.wait().ok());
  const ServedRequest seen = server.seen().at(0);
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, "/a%20b?q=1");
  EXPECT_EQ(seen.header("range"), "bytes=10-29");
  EXPECT_EQ(seen.header("if-match"), "\"v1\"");
  EXPECT_EQ(seen.header("accept-encoding"), "");
  auto by_time = std::make_shared<Remote>();
  by_time->url = server.url("/o");
  by_time->modified = "Thu, 01 Jan 2026 00:00:00 GMT";
  Fetched other(by_time, 0, 5, held_.size());
  transport.submit(other);
  ASSERT_TRUE(other.wait().ok());
  EXPECT_EQ(server.seen().at(1).header("if-unmodified-since"), by_time->modified);
}

TEST_F(TransportRanges, AreManyAtOnceAndAtMostAsManyAsAllowed) {
  std::atomic<int> now{0}, most{0};
  HttpServer server([&](const auto& request) {
    const int here = ++now;
    for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    --now;
    return whole_answer(request, held_);
  });
  Transport transport(quick(8));
  const auto object = remote_at(server.url("/o"));
  std::vector<std::unique_ptr<Fetched>> all;
  for (std::uint64_t i = 0; i < 200; ++i) {
    all.push_back(std::make_unique<Fetched>(object, i * 4999, 3000, held_.size()));
    transport.submit(*all.back());
  }
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(all[i]->wait().ok());
    EXPECT_EQ(all[i]->bytes, held_.substr(i * 4999, 3000));
    EXPECT_EQ(all[i]->times(), 1);
  }
  EXPECT_GT(most, 1);
  // Hedges come on top, and a request that lost against its hedge ends its connection. A busy
  // machine has more of them, but at most one in twenty.
  const TransportCounts counts = transport.counts();
  EXPECT_LE(counts.hedges, 200U / 20 + 1);
  const int more = static_cast<int>(counts.hedges + counts.retries);
  EXPECT_LE(most, 8 + more);
  EXPECT_LE(server.connections(), 8 + 2 * more);
}

TEST_F(TransportRanges, OpenAnObjectWithItsSizeAndVersion) {
  HttpServer server([&](const auto& request) {
    if (request.target == "/short") return whole_answer(request, "abc", "W/\"weak\"");
    if (request.target == "/empty") return whole_answer(request, "");
    if (request.target == "/empty200") {
      return ServedAnswer{.status = 200, .headers = {"ETag: \"e\""}, .body = ""};
    }
    return whole_answer(request, held_);
  });
  Transport transport(quick());
  Fetched longer(remote_at(server.url("/o"), ""), 1000);
  transport.submit(longer);
  ASSERT_TRUE(longer.wait().ok());
  EXPECT_EQ(longer.found_bytes, held_.size());
  EXPECT_EQ(longer.found.etag, "\"v1\"");
  EXPECT_EQ(longer.bytes, held_.substr(0, 1000));
  Fetched shorter(remote_at(server.url("/short"), ""), 1000);
  transport.submit(shorter);
  ASSERT_TRUE(shorter.wait().ok());
  EXPECT_EQ(shorter.found_bytes, 3U);
  EXPECT_EQ(shorter.taken, 3U);
  EXPECT_FALSE(shorter.found.has_strong_etag());
  for (const char* path : {"/empty", "/empty200"}) {
    Fetched empty(remote_at(server.url(path), ""), 1000);
    transport.submit(empty);
    ASSERT_TRUE(empty.wait().ok()) << path;
    EXPECT_EQ(empty.found_bytes, 0U);
    EXPECT_EQ(empty.taken, 0U);
  }
}

TEST_F(TransportRanges, EndWithinAMomentWhenCancelled) {
  HttpServer server([&](const auto& request) {
    ServedAnswer answer = whole_answer(request, held_);
    answer.stop_after = 100;
    answer.stall = std::chrono::milliseconds(60'000);
    return answer;
  });
  TransportOptions options = quick(2);
  options.hedge = false;
  Transport transport(options);
  std::vector<std::unique_ptr<Fetched>> all;
  for (std::uint64_t i = 0; i < 6; ++i) {  // some in flight, some in line
    all.push_back(std::make_unique<Fetched>(remote_at(server.url("/o")), i, 5000, held_.size()));
    transport.submit(*all.back());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (const auto& one : all) one->cancel = true;
  for (const auto& one : all) {
    EXPECT_EQ(one->wait().fault, HttpFault::cancelled);
    EXPECT_EQ(one->times(), 1);
  }
}

TEST_F(TransportRanges, WorkInTheChildOfAForkWithATransportOfItsOwn) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not follow threads into a child";
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const auto object = remote_at(server.url("/o"));
  Transport here(quick());
  Fetched before(object, 0, 100, held_.size());
  here.submit(before);
  ASSERT_TRUE(before.wait().ok());
  expect_success(start_child([&] {
    Transport there(quick());
    Fetched fetched(object, 500, 100, held_.size());
    there.submit(fetched);
    return fetched.wait().ok() && fetched.bytes == held_.substr(500, 100) ? 0 : 1;
  }));
}

}  // namespace
}  // namespace lowtide::transport_test
