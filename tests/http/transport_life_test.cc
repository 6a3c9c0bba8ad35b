// A transport that works for long holds no more than at first.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "http/transport.h"
#include "support/data_file.h"
#include "support/forked.h"
#include "support/http_rig.h"
#include "support/http_server.h"

namespace lowtide::transport_life_test {
namespace {

constexpr unsigned kMost = 16;

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

std::uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "RssAnon: %llu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

// Sends `count` requests, as many at once as allowed.
void fetch(Transport& transport, const std::shared_ptr<const Remote>& object,
           const std::string& held, int count) {
  for (int done = 0; done < count; done += kMost) {
    std::vector<std::unique_ptr<Fetched>> some;
    for (unsigned i = 0; i < kMost; ++i) {
      const std::uint64_t offset = (static_cast<std::uint64_t>(done) * 7 + i * 64) % 4000;
      some.push_back(std::make_unique<Fetched>(object, offset, 64, held.size()));
      transport.submit(*some.back());
    }
    for (const auto& one : some) {
      ASSERT_TRUE(one->wait().ok());
      ASSERT_EQ(one->bytes, held.substr(one->offset_bytes, 64));
    }
  }
}

TEST(TransportLife, LeavesNothingBehindAfterAHundredThousandRequests) {
  if (const std::string why = Transport::probe(); !why.empty()) GTEST_SKIP() << "no http: " << why;
  const std::string held = pattern(5000);
  // One of a thousand fails, so that tries and connections end as well.
  HttpServer server([&](const ServedRequest& request) {
    if (request.number % 1000 == 999) return ServedAnswer{.status = 503};
    return whole_answer(request, held);
  });
  Transport transport(quick(kMost));
  const auto object = remote_at(server.url("/o"));
  const int all = !sanitized() ? 100'000 : 4'000;  // a sanitizer is slow, and holds what was freed
  fetch(transport, object, held, all / 10);
  const std::size_t open_before = descriptors();
  const std::uint64_t held_before = anonymous_bytes();
  fetch(transport, object, held, all - all / 10);
  EXPECT_GE(server.requests(), all);
  // A connection ends only with an answer that nobody waits for any more: that of a hedge, or of a
  // try that came to nothing. How many there are depends on how busy the machine is.
  const TransportCounts counts = transport.counts();
  EXPECT_LE(static_cast<std::uint64_t>(server.connections()),
            2 * kMost + counts.hedges + counts.retries);
  EXPECT_LE(descriptors(), open_before + 4 * kMost);  // both ends are in this process
  if (!sanitized()) {
    EXPECT_LE(anonymous_bytes(), held_before + (4U << 20));
  }
}

}  // namespace
}  // namespace lowtide::transport_life_test
