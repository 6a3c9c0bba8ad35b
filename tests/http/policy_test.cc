#include "http/policy.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "http/redirect.h"

namespace lowtide::policy_test {
namespace {

HttpResult answered(int status) {
  return {.fault = HttpFault::status, .status = status};
}

TEST(Retry, IsForWhatMayPass) {
  for (const int status : {408, 429, 500, 502, 503, 504})
    EXPECT_TRUE(is_transient(answered(status)));
  for (const int status : {400, 401, 403, 404, 409, 416, 501}) {
    EXPECT_FALSE(is_transient(answered(status))) << status;
  }
  EXPECT_TRUE(is_transient({.fault = HttpFault::cut}));
  EXPECT_TRUE(is_transient({.fault = HttpFault::stalled}));
  EXPECT_FALSE(is_transient({.fault = HttpFault::changed}));
  EXPECT_FALSE(is_transient({.fault = HttpFault::no_range}));
  EXPECT_FALSE(is_transient({.fault = HttpFault::tls}));
}

TEST(Retry, WaitsTwiceAsLongEachTimeAndNeverLongerThanTheLongest) {
  const RetryRules rules;
  for (std::uint32_t tries = 1; tries < 70; ++tries) {
    for (const std::uint64_t random : {std::uint64_t{0}, std::uint64_t{12345}, UINT64_MAX}) {
      const std::uint64_t pause = pause_ns(rules, tries, random, 0);
      const std::uint64_t whole =
          tries > 7 ? rules.longest_pause_ns
                    : std::min(rules.longest_pause_ns, rules.first_pause_ns << (tries - 1));
      EXPECT_LE(pause, whole);
      EXPECT_GE(pause, whole / 2);
    }
  }
  EXPECT_NE(pause_ns(rules, 3, 1, 0), pause_ns(rules, 3, 1'000'003, 0)) << "jitter";
}

TEST(Retry, WaitsForAsLongAsTheServerAsksUpToTheLongest) {
  const RetryRules rules;
  EXPECT_EQ(pause_ns(rules, 1, 0, 2), 2000 * kMs);
  EXPECT_EQ(pause_ns(rules, 1, 0, 1'000'000'000'000), rules.longest_pause_ns);
}

TEST(Hedging, KnowsNothingAtFirst) {
  Hedging hedging;
  for (int i = 0; i < 31; ++i) {
    hedging.sent();
    hedging.first_byte_after(20 * kMs);
  }
  EXPECT_EQ(hedging.threshold_ns(), 0U);
  EXPECT_FALSE(hedging.allowed());
}

TEST(Hedging, SendsTheSlowestTwiceAndAtMostOneOfTwenty) {
  Hedging hedging;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    hedging.sent();
    hedging.first_byte_after((i % 100 == 7 ? 2000 : 20 + i % 10) * kMs);
  }
  EXPECT_GE(hedging.threshold_ns(), 29 * kMs);
  EXPECT_LE(hedging.threshold_ns(), 100 * kMs);
  int hedges = 0;
  while (hedging.allowed()) {
    hedging.hedged();
    ++hedges;
  }
  EXPECT_EQ(hedges, 1000 / 20);
}

TEST(FlowCap, GrowsWhileTheRateGrows) {
  FlowCap cap(128);
  std::uint64_t now = 1;
  const unsigned start = cap.limit();
  for (int i = 0; i < 5000; ++i) {
    now += 100 * kMs / cap.limit();  // a server that takes 100 ms for any number of requests
    cap.ended(now, 65536, true);
  }
  EXPECT_LT(start, 128U);
  EXPECT_EQ(cap.limit(), 128U);
}

TEST(FlowCap, StaysWhereMoreInFlightIsNotFaster) {
  FlowCap cap(128);
  std::uint64_t now = 1;
  for (int i = 0; i < 5000; ++i) {
    now += kMs;  // one line, as fast as it gets
    cap.ended(now, 65536, true);
  }
  EXPECT_LE(cap.limit(), 32U);
}

TEST(FlowCap, DoesNotGrowForACallerWhoSendsLittle) {
  FlowCap cap(128);
  const unsigned start = cap.limit();
  std::uint64_t now = 1;
  for (int i = 0; i < 1000; ++i) cap.ended(now += kMs, 1000 * static_cast<unsigned>(i), false);
  EXPECT_EQ(cap.limit(), start);
}

TEST(FlowCap, ShrinksOncePerRefusalAndNeverBelowOne) {
  FlowCap cap(128);
  const unsigned start = cap.limit();
  cap.overloaded(1000 * kMs);
  const unsigned once = cap.limit();
  EXPECT_LT(once, start);
  for (int i = 0; i < 100; ++i) cap.overloaded(1001 * kMs);
  EXPECT_EQ(cap.limit(), once) << "requests that were refused together";
  for (std::uint64_t i = 2; i < 100; ++i) cap.overloaded(i * 1000 * kMs);
  EXPECT_EQ(cap.limit(), 1U);
  EXPECT_EQ(FlowCap(1).limit(), 1U);
}

TEST(Redirect, ResolvesEveryKindOfLocation) {
  const Address from = parse_http("https://u:p@h:8443/a/b?x=1");
  const auto to = [&](const char* location) {
    const auto found = redirected(from, location);
    return found ? found->url() : "";
  };
  EXPECT_EQ(to("https://other/c?d"), "https://other/c?d");
  EXPECT_EQ(to("//other/c"), "https://other/c");
  EXPECT_EQ(to("/c"), "https://h:8443/c") << "without the password";
  EXPECT_EQ(to("c"), "https://h:8443/a/c");
  EXPECT_EQ(to("?y"), "https://h:8443/a/b?y");
}

TEST(Redirect, RefusesWhereItMustNotLead) {
  const Address far = parse_http("https://h/a"), plain = parse_http("http://h/a");
  for (const char* location :
       {"", "http://h/a", "file:///etc/passwd", "s3://b/k", "ftp://h/a", "javascript:x",
        "https://localhost/a", "https://127.0.0.1/a", "https://[::1]/a",
        "https://169.254.169.254/a", "https:///a", "https://h/a\r\nX: y"}) {
    EXPECT_FALSE(redirected(far, location)) << location;
  }
  EXPECT_TRUE(redirected(plain, "https://h/a"));
  EXPECT_TRUE(redirected(plain, "http://other/a"));
  EXPECT_FALSE(redirected(plain, "http://localhost/a"));
  EXPECT_TRUE(redirected(parse_http("http://127.0.0.1:1/a"), "http://127.0.0.1:2/a"));
}

TEST(Fault, ChoosesTheClassOfPythonsError) {
  EXPECT_EQ(errno_of(answered(404)), ENOENT);
  EXPECT_EQ(errno_of(answered(401)), EACCES);
  EXPECT_EQ(errno_of(answered(403)), EACCES);
  EXPECT_EQ(errno_of({.fault = HttpFault::changed}), ESTALE);
  for (int fault = 1; fault <= static_cast<int>(HttpFault::no_library); ++fault) {
    const HttpResult result{.fault = static_cast<HttpFault>(fault), .status = 500, .tries = 3};
    EXPECT_NE(errno_of(result), 0);
    EXPECT_NE(describe(result), "");
    EXPECT_NE(describe(result).find("(3 tries)"), std::string::npos);
  }
}

TEST(Fault, IsReadFromTheBodyOfARefusal) {
  EXPECT_EQ(fault_of_refusal(403, "<Error><Code>RequestTimeTooSkewed</Code>"),
            HttpFault::clock_skew);
  EXPECT_EQ(fault_of_refusal(403, "<Message>Request has expired</Message>"), HttpFault::expired);
  EXPECT_EQ(fault_of_refusal(403, "<Code>AccessDenied</Code>"), HttpFault::status);
  EXPECT_EQ(fault_of_refusal(412, ""), HttpFault::changed);
  EXPECT_EQ(fault_of_refusal(407, ""), HttpFault::proxy);
  EXPECT_EQ(fault_of_refusal(503, "RequestTimeTooSkewed"), HttpFault::status);
}

}  // namespace
}  // namespace lowtide::policy_test
