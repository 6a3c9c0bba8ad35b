// What a server or the way to it does wrong ends as data, or is helped.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "http/transport.h"
#include "support/data_file.h"
#include "support/http_rig.h"
#include "support/http_server.h"

namespace lowtide::transport_faults_test {
namespace {

constexpr std::uint64_t kSize = 200'000;

class TransportFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
  // The result of one range of 100,000 bytes from a server that answers so.
  HttpResult fetch(const HttpServer::Answer& answer, const TransportOptions& options = quick()) {
    HttpServer server(answer);
    Transport transport(options);
    Fetched fetched(remote_at(server.url("/o")), 1000, 100'000, kSize);
    transport.submit(fetched);
    const HttpResult result = fetched.wait();
    if (result.ok()) {
      EXPECT_EQ(fetched.bytes, held_.substr(1000, 100'000));
    }
    requests_ = server.seen();
    return result;
  }
  const std::string held_ = pattern(kSize);
  std::vector<ServedRequest> requests_;
};

TEST_F(TransportFaults, OfTheMomentAreTriedAgain) {
  for (const int status : {429, 500, 502, 503, 504}) {
    const HttpResult result = fetch([&](const ServedRequest& request) {
      if (request.number < 3) return ServedAnswer{.status = status, .body = "later"};
      return whole_answer(request, held_);
    });
    EXPECT_TRUE(result.ok()) << status;
    EXPECT_EQ(requests_.size(), 4U);
  }
}

TEST_F(TransportFaults, ThatLastEndAfterTheirTimeWithTheStatus) {
  TransportOptions options = quick();
  options.retry.patience_ns = 1000 * kMs;  // a busy machine makes few tries in less
  const HttpResult result = fetch(
      [&](const ServedRequest&) { return ServedAnswer{.status = 503, .body = "no"}; }, options);
  EXPECT_EQ(result.fault, HttpFault::status);
  EXPECT_EQ(result.status, 503);
  EXPECT_GT(result.tries, 3U);
  EXPECT_EQ(result.tries, requests_.size());
}

TEST_F(TransportFaults, InTheMiddleOfABodyGoOnAtTheByteReached) {
  const HttpResult result = fetch([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_);
    if (request.number < 3) answer.stop_after = 20'000;
    return answer;
  });
  EXPECT_TRUE(result.ok());
  ASSERT_EQ(requests_.size(), 4U);
  EXPECT_EQ(requests_[0].range()->first, 1000U);
  EXPECT_GT(requests_[3].range()->first, 1000U) << "some of it was kept";
  EXPECT_EQ(requests_[3].range()->second, 100'999U);
}

TEST_F(TransportFaults, OfStallsAreTriedAgain) {
  TransportOptions options = quick();
  options.retry.stall_ns = 50 * kMs;
  const HttpResult result = fetch(
      [&](const ServedRequest& request) {
        ServedAnswer answer = whole_answer(request, held_);
        if (request.number == 0) {
          answer.stop_after = 5000;
          answer.stall = std::chrono::milliseconds(60'000);
        }
        return answer;
      },
      options);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_EQ(requests_[1].range()->first, 6000U);
}

TEST_F(TransportFaults, OfStallsThatLastEndAfterTheirTime) {
  TransportOptions options = quick();
  options.retry.stall_ns = 20 * kMs;
  options.retry.patience_ns = 100 * kMs;
  const HttpResult result = fetch(
      [&](const ServedRequest&) {
        return ServedAnswer{.delay = std::chrono::milliseconds(60'000)};
      },
      options);
  EXPECT_EQ(result.fault, HttpFault::stalled);
  EXPECT_GT(result.tries, 1U);
}

TEST_F(TransportFaults, ThatStayAreNotTriedAgain) {
  for (const int status : {400, 401, 403, 404, 416, 501}) {
    const HttpResult result = fetch(
        [&](const ServedRequest&) { return ServedAnswer{.status = status, .body = "never"}; });
    EXPECT_EQ(result.fault, HttpFault::status);
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(requests_.size(), 1U) << status;
  }
}

TEST_F(TransportFaults, AreAnswersOtherThanTheRange) {
  const auto changed = [&](auto change) {
    return fetch([&, change](const ServedRequest& request) {
             ServedAnswer answer = whole_answer(request, held_);
             change(&answer);
             return answer;
           })
        .fault;
  };
  EXPECT_EQ(changed([&](ServedAnswer* answer) {
              answer->status = 200;
              answer->headers.clear();
              answer->body = held_;
            }),
            HttpFault::no_range)
      << "the whole object";
  EXPECT_EQ(changed([](ServedAnswer* answer) { answer->status = 200; }), HttpFault::no_range)
      << "a range under the wrong number, as rclone sends it";
  EXPECT_EQ(changed([](ServedAnswer* answer) {
              answer->headers = {"Content-Range: bytes 1001-101000/200000"};
            }),
            HttpFault::wrong_range);
  EXPECT_EQ(changed([](ServedAnswer* answer) {
              answer->headers = {"Content-Range: bytes 1000-50999/200000"};
              answer->body.resize(50'000);
            }),
            HttpFault::wrong_range)
      << "a part of it";
  EXPECT_EQ(changed([](ServedAnswer* answer) { answer->headers.clear(); }), HttpFault::wrong_range);
  EXPECT_EQ(
      changed([](ServedAnswer* answer) { answer->headers.push_back("Content-Encoding: gzip"); }),
      HttpFault::encoded);
  EXPECT_EQ(changed([](ServedAnswer* answer) { answer->body += "more"; }), HttpFault::wrong_range)
      << "more than the head says";
  EXPECT_EQ(requests_.size(), 1U) << "none of it is tried again";
}

TEST_F(TransportFaults, OfAServerThatForgetsTheRangeNowAndThenAreTriedAgain) {
  const HttpResult result = fetch([&](const ServedRequest& request) {
    if (request.number < 1) return ServedAnswer{.status = 200, .body = "volume not found"};
    return whole_answer(request, held_);
  });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(requests_.size(), 2U);
}

TEST_F(TransportFaults, OfAServerThatLiesAboutTheLengthEndAsABrokenConnection) {
  TransportOptions options = quick();
  options.retry.patience_ns = 60 * kMs;
  const HttpResult result = fetch(
      [&](const ServedRequest& request) {
        ServedAnswer answer = whole_answer(request, held_);
        answer.length = answer.body.size();
        answer.body.clear();
        return answer;
      },
      options);
  EXPECT_EQ(result.fault, HttpFault::cut);
}

TEST_F(TransportFaults, OfAServerThatPromisesMoreThanTheRangeEndWithoutAnotherRequest) {
  const HttpResult result = fetch([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_);
    answer.length = answer.body.size() + 10;  // and closes the connection
    return answer;
  });
  EXPECT_EQ(result.fault, HttpFault::cut);
  EXPECT_EQ(requests_.size(), 1U) << "all bytes were there: what would it ask for?";
}

TEST_F(TransportFaults, OfSuchAServerEndAnOpeningAfterItsTime) {
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_.substr(0, 5000));
    answer.length = answer.body.size() + 10;
    return answer;
  });
  TransportOptions options = quick();
  options.retry.patience_ns = 100 * kMs;
  Transport transport(options);
  Fetched opening(remote_at(server.url("/o")), 64 * 1024);
  transport.submit(opening);
  EXPECT_EQ(opening.wait().fault, HttpFault::cut);
}

TEST_F(TransportFaults, NameAChangedAndAShorterObject) {
  EXPECT_EQ(fetch([&](const ServedRequest& request) {
              return whole_answer(request, held_, "\"v2\"");
            }).fault,
            HttpFault::changed);
  const HttpResult ended = fetch(
      [&](const ServedRequest& request) { return whole_answer(request, held_.substr(0, 50'000)); });
  EXPECT_EQ(ended.fault, HttpFault::ended);
  EXPECT_EQ(ended.found_bytes, 50'000U);
  const HttpResult gone = fetch(
      [&](const ServedRequest& request) { return whole_answer(request, held_.substr(0, 10)); });
  EXPECT_EQ(gone.fault, HttpFault::ended);
  EXPECT_EQ(gone.found_bytes, 10U);
}

TEST_F(TransportFaults, NameAServerThatIsNotThere) {
  Transport transport(quick());
  int port = 0;
  {
    const HttpServer server([](const auto&) { return ServedAnswer{}; });
    port = server.port();
  }
  Fetched nobody(remote_at("http://127.0.0.1:" + std::to_string(port) + "/o"), 0, 10, 100);
  transport.submit(nobody);
  EXPECT_EQ(nobody.wait().fault, HttpFault::refused);
  EXPECT_EQ(nobody.wait().tries, 4U) << "it never answered";
  Fetched nowhere(remote_at("http://no-such-host.invalid/o"), 0, 10, 100);
  transport.submit(nowhere);
  EXPECT_EQ(nowhere.wait().fault, HttpFault::no_host);
}

TEST_F(TransportFaults, NameAServerWithoutTls) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  Transport transport(quick());
  Fetched fetched(remote_at("https://127.0.0.1:" + std::to_string(server.port()) + "/o"), 0, 10,
                  100);
  transport.submit(fetched);
  const HttpFault fault = fetched.wait().fault;
  EXPECT_TRUE(fault == HttpFault::handshake || fault == HttpFault::cut) << static_cast<int>(fault);
}

TEST_F(TransportFaults, OfSlowServersAreHelpedByASecondRequest) {
  std::atomic<bool> slow = false;
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer = whole_answer(request, held_);
    if (slow.exchange(false)) answer.delay = std::chrono::milliseconds(60'000);
    return answer;
  });
  Transport transport(quick(4));
  const auto object = remote_at(server.url("/o"));
  for (std::uint64_t i = 0; i < 100; ++i) {
    slow = i == 80;
    Fetched fetched(object, i * 1000, 1000, kSize);
    transport.submit(fetched);
    ASSERT_TRUE(fetched.wait().ok());
    EXPECT_EQ(fetched.bytes, held_.substr(i * 1000, 1000));
  }
  const TransportCounts counts = transport.counts();
  EXPECT_GE(counts.hedges, 1U);
  EXPECT_LE(counts.hedges * 20, counts.requests);
  EXPECT_EQ(counts.retries, 0U);
}

TEST_F(TransportFaults, LowerTheNumberInFlight) {
  HttpServer server([&](const ServedRequest& request) {
    if (request.number < 8) return ServedAnswer{.status = 503, .body = "slow down"};
    return whole_answer(request, held_);
  });
  Transport transport(quick(16));
  const std::uint64_t before = transport.counts().limit;
  const auto object = remote_at(server.url("/o"));
  std::vector<std::unique_ptr<Fetched>> all;
  for (std::uint64_t i = 0; i < 16; ++i) {
    all.push_back(std::make_unique<Fetched>(object, i * 1000, 1000, kSize));
    transport.submit(*all.back());
  }
  for (const auto& one : all) EXPECT_TRUE(one->wait().ok());
  EXPECT_LT(transport.counts().limit, before);
}

// On a busy machine more requests may not be faster, so the server gets slower until they are.
TEST_F(TransportFaults, AreNeededToLowerItNotAnswersThatComeTogether) {
  std::uint64_t before = 0, after = 0;
  for (int delay_ms = 20; delay_ms <= 320 && after <= before; delay_ms *= 4) {
    HttpServer server([&](const ServedRequest& request) {
      ServedAnswer answer = whole_answer(request, held_);
      answer.delay = std::chrono::milliseconds(delay_ms);
      return answer;
    });
    Transport transport(quick(64));
    before = transport.counts().limit;
    const auto object = remote_at(server.url("/o"));
    std::vector<std::unique_ptr<Fetched>> all;
    for (std::uint64_t i = 0; i < 199; ++i) {
      all.push_back(std::make_unique<Fetched>(object, i * 1000, 1000, kSize));
      transport.submit(*all.back());
    }
    for (const auto& one : all) EXPECT_TRUE(one->wait().ok());
    after = transport.counts().limit;
  }
  EXPECT_GT(after, before) << "the server answers any number at the same time";
}

}  // namespace
}  // namespace lowtide::transport_faults_test
