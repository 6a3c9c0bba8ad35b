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

// What the process of the transport holds after a tenth of the requests and at the end. The server
// is in another process where children work: its threads hold memory as well.
int fetch_all(const std::string& url, const std::string& held, int all) {
  Transport transport(quick(kMost));
  const auto object = remote_at(url);
  fetch(transport, object, held, all / 10);
  const std::size_t open_before = descriptors();
  const std::uint64_t held_before = anonymous_bytes();
  fetch(transport, object, held, all - all / 10);
  EXPECT_LE(descriptors(), open_before + 4 * kMost);  // both ends may be in this process
  if (!sanitized()) {
    EXPECT_LE(anonymous_bytes(), held_before + (4U << 20));
  }
  // A connection ends only with an answer that nobody waits for any more: that of a hedge, or of a
  // try that came to nothing. How many there are depends on how busy the machine is.
  const TransportCounts counts = transport.counts();
  return static_cast<int>(2 * kMost + counts.hedges + counts.retries);
}

TEST(TransportLife, LeavesNothingBehindAfterAHundredThousandRequests) {
  if (const std::string why = Transport::probe(); !why.empty()) GTEST_SKIP() << "no http: " << why;
  const std::string held = pattern(5000);
  // One of a thousand fails, so that tries and connections end as well.
  HttpServer server([&](const ServedRequest& request) {
    if (request.number % 1000 == 999) return ServedAnswer{.status = 503};
    return whole_answer(request, held);
  });
  const int all = !sanitized() ? 100'000 : 4'000;  // a sanitizer is slow, and holds what was freed
  int most_connections = 0;
  if (children_work()) {
    int answer[2];
    ASSERT_EQ(::pipe(answer), 0);
    expect_success(start_child([&] {
      ::alarm(280);
      const int found = fetch_all(server.url("/o"), held, all);
      const bool told = ::write(answer[1], &found, sizeof found) == sizeof found;
      return told && !testing::Test::HasFailure() ? 0 : 1;
    }));
    ::close(answer[1]);  // else a child that said nothing would be waited for
    EXPECT_EQ(::read(answer[0], &most_connections, sizeof most_connections),
              static_cast<ssize_t>(sizeof most_connections));
    ::close(answer[0]);
  } else {
    most_connections = fetch_all(server.url("/o"), held, all);
  }
  EXPECT_GE(server.requests(), all);
  EXPECT_LE(server.connections(), most_connections);
}

}  // namespace
}  // namespace lowtide::transport_life_test
