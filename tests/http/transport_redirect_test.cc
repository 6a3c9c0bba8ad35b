// Redirects keep the range and lose the credentials, and lead nowhere that they must not.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "http/transport.h"
#include "support/data_file.h"
#include "support/http_rig.h"
#include "support/http_server.h"

namespace lowtide::transport_redirect_test {
namespace {

class TokenSigner final : public Signer {
 public:
  std::optional<SignedUrl> sign(const std::string& url, bool again) const override {
    if (again) ++asked_again;
    if (not_yet.fetch_sub(1) > 0) return std::nullopt;
    return SignedUrl{.url = url, .headers = {"Authorization: Bearer " + token}};
  }
  std::string token = "SECRET";
  mutable std::atomic<int> asked_again{0}, not_yet{0};
};

ServedAnswer moved(const std::string& to, int status = 302) {
  return {.status = status, .headers = {"Location: " + to}, .body = "moved"};
}

class TransportRedirect : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
  HttpResult fetch(const std::string& url, std::shared_ptr<const Signer> signer = nullptr) {
    auto object = std::make_shared<Remote>();
    object->url = url;
    object->etag = "\"v1\"";
    object->signer = std::move(signer);
    Transport transport(quick());
    Fetched fetched(object, 100, 50, held_.size());
    transport.submit(fetched);
    const HttpResult result = fetched.wait();
    if (result.ok()) {
      EXPECT_EQ(fetched.bytes, held_.substr(100, 50));
    }
    return result;
  }
  const std::string held_ = pattern(10'000);
};

TEST_F(TransportRedirect, KeepsTheRangeAndDropsTheTokenOnAnotherServer) {
  HttpServer store([&](const auto& request) { return whole_answer(request, held_); });
  HttpServer hub([&](const ServedRequest& request) {
    return request.target == "/o" ? moved("/here") : moved(store.url("/there?sig=1"), 307);
  });
  EXPECT_TRUE(fetch(hub.url("/o"), std::make_shared<TokenSigner>()).ok());
  const auto at_hub = hub.seen(), at_store = store.seen();
  ASSERT_EQ(at_hub.size(), 2U);
  ASSERT_EQ(at_store.size(), 1U);
  EXPECT_EQ(at_hub[0].header("authorization"), "Bearer SECRET");
  EXPECT_EQ(at_hub[1].header("authorization"), "Bearer SECRET") << "the same server";
  EXPECT_EQ(at_store[0].header("authorization"), "");
  EXPECT_EQ(at_store[0].target, "/there?sig=1");
  for (const ServedRequest& request : {at_hub[0], at_hub[1], at_store[0]}) {
    EXPECT_EQ(request.header("range"), "bytes=100-149");
    EXPECT_EQ(request.header("if-match"), "\"v1\"");
  }
}

// Signs one URL, whatever it is asked for.
class FixedSigner final : public Signer {
 public:
  explicit FixedSigner(std::string url) : url_(std::move(url)) {}
  std::optional<SignedUrl> sign(const std::string&, bool) const override {
    return SignedUrl{.url = url_, .headers = {"Authorization: Bearer SECRET"}};
  }

 private:
  const std::string url_;
};

TEST_F(TransportRedirect, OnTheSameServerGoesWhereItLeadsWithTheToken) {
  HttpServer server([&](const ServedRequest& request) {
    return request.target == "/o?sig=1" ? moved("/there") : whole_answer(request, held_);
  });
  const std::string url = server.url("/o?sig=1");
  EXPECT_TRUE(fetch(url, std::make_shared<FixedSigner>(url)).ok());
  ASSERT_EQ(server.requests(), 2);
  EXPECT_EQ(server.seen()[1].target, "/there");
  EXPECT_EQ(server.seen()[1].header("authorization"), "Bearer SECRET");
}

TEST_F(TransportRedirect, IsFollowedThroughAProxyOfThisMachine) {
  HttpServer proxy([&](const ServedRequest& request) {
    return request.target == "http://far.example/o" ? moved("http://farther.example/o")
                                                    : whole_answer(request, held_);
  });
  ::setenv("http_proxy", proxy.url("").c_str(), 1);
  const HttpResult result = fetch("http://far.example/o");
  ::unsetenv("http_proxy");
  EXPECT_TRUE(result.ok()) << describe(result);
  EXPECT_EQ(proxy.seen().at(1).target, "http://farther.example/o");
}

TEST_F(TransportRedirect, IsNotWhatAProxyWithAPasswordSends) {
  HttpServer proxy([&](const auto&) { return ServedAnswer{.status = 407, .body = "who?"}; });
  ::setenv("http_proxy", proxy.url("").c_str(), 1);
  const HttpResult result = fetch("http://far.example/o");
  ::unsetenv("http_proxy");
  EXPECT_EQ(result.fault, HttpFault::proxy);
}

TEST_F(TransportRedirect, DropsThePasswordOfTheAddress) {
  HttpServer store([&](const auto& request) { return whole_answer(request, held_); });
  HttpServer hub([&](const auto&) { return moved(store.url("/there")); });
  EXPECT_TRUE(fetch("http://user:SECRET@127.0.0.1:" + std::to_string(hub.port()) + "/o").ok());
  EXPECT_NE(hub.seen().at(0).header("authorization"), "");
  EXPECT_EQ(store.seen().at(0).header("authorization"), "");
}

TEST_F(TransportRedirect, IsRefusedWhereItMustNotLead) {
  for (const char* to : {"file:///etc/passwd", "ftp://127.0.0.1/x", "s3://b/k", ""}) {
    HttpServer hub([&](const auto&) { return moved(to); });
    EXPECT_EQ(fetch(hub.url("/o")).fault, HttpFault::redirect) << to;
    EXPECT_EQ(hub.requests(), 1);
  }
}

TEST_F(TransportRedirect, EndsAfterFiveOfThem) {
  HttpServer hub([&](const auto&) { return moved("/again"); });
  EXPECT_EQ(fetch(hub.url("/o")).fault, HttpFault::redirect);
  EXPECT_EQ(hub.requests(), 6);
}

TEST_F(TransportRedirect, AsksTheSignerOnceMoreWhenRefused) {
  const auto signer = std::make_shared<TokenSigner>();
  HttpServer server([&](const ServedRequest& request) {
    if (request.number == 0) return ServedAnswer{.status = 403, .body = "expired"};
    return whole_answer(request, held_);
  });
  EXPECT_TRUE(fetch(server.url("/o"), signer).ok());
  EXPECT_EQ(signer->asked_again, 1);
  HttpServer closed([&](const auto&) { return ServedAnswer{.status = 403, .body = "never"}; });
  EXPECT_EQ(fetch(closed.url("/o"), signer).status, 403);
  EXPECT_EQ(closed.requests(), 2);
}

TEST_F(TransportRedirect, WaitsForASignerThatHasNothingYet) {
  const auto signer = std::make_shared<TokenSigner>();
  signer->not_yet = 5;
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  EXPECT_TRUE(fetch(server.url("/o"), signer).ok());
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(TransportRedirect, NeverSendsALineEndOfTheSigner) {
  const auto signer = std::make_shared<TokenSigner>();
  signer->token = "x\r\nX-Injected: yes";
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  EXPECT_TRUE(fetch(server.url("/o"), signer).ok());
  EXPECT_EQ(server.seen().at(0).header("x-injected"), "");
}

}  // namespace
}  // namespace lowtide::transport_redirect_test
