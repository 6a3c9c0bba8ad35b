// reactor.h - the transport's thread: it sends, waits, judges, tries again. Everything but the
// queue of arrived requests is used by that thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "http/attempt.h"
#include "http/curl.h"
#include "http/policy.h"
#include "http/transport.h"

namespace lowtide {

class Transport::Reactor {
 public:
  Reactor(const Curl& curl, const TransportOptions& options);
  ~Reactor();

  // Starts the thread if it does not run. Throws IoError, std::bad_alloc.
  void submit(HttpRequest& request) LOWTIDE_EXCLUDES(mutex_);
  [[nodiscard]] TransportCounts counts() const noexcept;

 private:
  void run() noexcept;
  [[nodiscard]] bool accept() noexcept LOWTIDE_EXCLUDES(mutex_);
  void begin_waiting() noexcept;
  void resume_due(std::uint64_t now) noexcept;
  void send(Transfer& transfer, bool hedge) noexcept;
  void wait_for_signer(Transfer& transfer) noexcept;
  void reap() noexcept;
  void settle(Attempt& attempt, CURLcode code) noexcept;
  [[nodiscard]] bool follow(Transfer& transfer, const Answer& answer) noexcept;
  void failed(Transfer& transfer, const HttpResult& result, std::uint64_t retry_after_s) noexcept;
  [[nodiscard]] bool may_retry(const Transfer& transfer, const HttpResult& result,
                               std::uint64_t now) const noexcept;
  void patrol(std::uint64_t now) noexcept;
  void patrol_one(Transfer& transfer, std::uint64_t now) noexcept;
  void drop_cancelled() noexcept;
  void release(Attempt& attempt) noexcept;
  void end(Transfer& transfer, const HttpResult& result) noexcept;
  [[nodiscard]] std::uint64_t patrol_every_ns() const noexcept;
  [[nodiscard]] int wait_ms(std::uint64_t now) const noexcept;
  [[nodiscard]] unsigned limit() const { return cap_.limit(); }

  const Curl& curl_;
  const TransportOptions options_;
  std::string authorities_;
  bool by_proxy_ = false;  // perhaps: libcurl reads the same variables
  CURLM* const multi_;
  std::thread thread_;  // started under the lock; joined when nobody submits any more

  Mutex mutex_;
  std::vector<HttpRequest*> arrived_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
  bool started_ LOWTIDE_GUARDED_BY(mutex_) = false;

  // Used by the thread only.
  std::deque<HttpRequest*> waiting_;
  std::vector<HttpRequest*> fresh_;
  std::vector<std::unique_ptr<Transfer>> transfers_, spare_transfers_;
  std::vector<std::unique_ptr<Attempt>> attempts_;  // all of them
  std::vector<Attempt*> idle_;
  Hedging hedging_;
  FlowCap cap_;
  std::uint64_t flying_ = 0;  // attempts that libcurl works on
  std::uint64_t patrolled_ns_ = 0;
  std::uint64_t random_ = 0;
  bool answered_ = false;  // some server has ever answered

  std::atomic<std::uint64_t> requests_{0}, retries_{0}, hedges_{0}, bytes_{0}, limit_now_{0};
};

}  // namespace lowtide
