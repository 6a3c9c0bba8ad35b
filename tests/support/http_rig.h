// http_rig.h - a range that a test fetches and waits for.
#pragma once

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "core/remote.h"
#include "http/transport.h"

namespace lowtide {

inline std::shared_ptr<const Remote> remote_at(const std::string& url,
                                               const std::string& etag = "\"v1\"") {
  auto remote = std::make_shared<Remote>();
  remote->url = url;
  remote->etag = etag;
  return remote;
}

class Fetched final : public HttpRequest {
 public:
  Fetched(std::shared_ptr<const Remote> from, std::uint64_t offset, std::uint64_t size,
          std::uint64_t total) {
    object = std::move(from);
    offset_bytes = offset;
    size_bytes = size;
    object_bytes = total;
    bytes.assign(size, '\0');
  }
  // One that opens.
  Fetched(std::shared_ptr<const Remote> from, std::uint64_t size) : Fetched(from, 0, size, 0) {
    opens = true;
  }

  void take(std::uint64_t at, std::span<const std::byte> some, std::uint32_t*) noexcept override {
    std::memcpy(bytes.data() + (at - offset_bytes), some.data(), some.size());
    taken += some.size();
  }
  void done(const HttpResult& result) noexcept override {
    const std::lock_guard lock(mutex_);
    result_ = result;
    ++times_;
    changed_.notify_all();
  }
  bool cancelled() const noexcept override { return cancel; }
  void opened(const Answer& answer, std::uint64_t size) noexcept override {
    found = answer;
    found_bytes = size;
  }
  HttpResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return times_ > 0; });
    return result_;
  }
  int times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

  std::string bytes;
  std::uint64_t taken = 0;
  std::atomic<bool> cancel = false;
  Answer found;
  std::uint64_t found_bytes = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  HttpResult result_;
  int times_ = 0;
};

// Rules under which a test does not wait.
inline TransportOptions quick(unsigned most = 32) {
  TransportOptions options;
  options.most_in_flight = most;
  options.retry.first_pause_ns = 1 * kMs;
  options.retry.longest_pause_ns = 20 * kMs;
  return options;
}

}  // namespace lowtide
