#include "http/reactor.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/clock.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kSignerPauseNs = 5 * kMs;
constexpr int kIdleMs = 10'000;
constexpr std::size_t kMostSpare = 256;

}  // namespace

Transport::Reactor::Reactor(const Curl& curl, const TransportOptions& options)
    : curl_(curl), options_(options), multi_(curl.multi_init()), cap_(options.most_in_flight) {
  if (multi_ == nullptr) throw std::bad_alloc();
  if (const char* const file = std::getenv("SSL_CERT_FILE")) {
    authorities_ = file;
  } else if (curl_.trust_file != nullptr) {
    authorities_ = find_authorities();
  }
  for (const char* const name :
       {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    by_proxy_ = by_proxy_ || std::getenv(name) != nullptr;
  }
  curl_.multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  curl_.multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options.most_in_flight));
  random_ = now_ns();
  limit_now_ = cap_.limit();
}

Transport::Reactor::~Reactor() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  curl_.multi_wakeup(multi_);
  if (thread_.joinable()) thread_.join();
  attempts_.clear();
  curl_.multi_cleanup(multi_);
}

thread_local const Transport::Reactor* Transport::Reactor::here_ = nullptr;

void Transport::Reactor::submit(HttpRequest& request) {
  if (here_ == this) {  // inside done(): it is begun before the thread waits again
    waiting_.push_back(&request);
    return;
  }
  bool first = false;  // else a call before has woken the thread
  {
    const MutexLock lock(mutex_);
    if (!started_) {
      thread_ = start_quiet_thread("a thread for requests", [this] { run(); });
      started_ = true;
    }
    first = arrived_.empty();
    arrived_.push_back(&request);
  }
  if (first) curl_.multi_wakeup(multi_);
}

TransportCounts Transport::Reactor::counts() const noexcept {
  return {.requests = requests_.load(std::memory_order_relaxed),
          .retries = retries_.load(std::memory_order_relaxed),
          .hedges = hedges_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .limit = limit_now_.load(std::memory_order_relaxed)};
}

void Transport::Reactor::run() noexcept {
  here_ = this;
  while (accept()) {
    const std::uint64_t now = now_ns();
    resume_due(now);
    begin_waiting();
    int running = 0;
    curl_.multi_perform(multi_, &running);
    reap();
    patrol(now);
    begin_waiting();  // in the place of those that ended
    limit_now_.store(cap_.limit(), std::memory_order_relaxed);
    curl_.multi_poll(multi_, nullptr, 0, wait_ms(now_ns()), nullptr);
  }
}

// Takes what arrived. False: it is time to end.
bool Transport::Reactor::accept() noexcept {
  bool stopping = false;
  {
    const MutexLock lock(mutex_);
    fresh_.swap(arrived_);
    stopping = stopping_;
  }
  for (HttpRequest* const request : fresh_) {
    try {
      waiting_.push_back(request);
    } catch (const std::bad_alloc&) {
      request->done({.fault = HttpFault::no_memory});
    }
  }
  fresh_.clear();
  return !stopping || !waiting_.empty() || !transfers_.empty();
}

void Transport::Reactor::begin_waiting() noexcept {
  while (!waiting_.empty() && transfers_.size() < limit()) {
    HttpRequest* const request = waiting_.front();
    waiting_.pop_front();
    if (request->cancelled()) {
      request->done({.fault = HttpFault::cancelled});
      continue;
    }
    try {
      auto transfer = spare_transfers_.empty() ? std::make_unique<Transfer>()
                                               : std::move(spare_transfers_.back());
      if (!spare_transfers_.empty()) spare_transfers_.pop_back();
      *transfer = {};
      transfer->request = request;
      transfer->target = parse_http(request->object->url);
      transfer->progress_ns = now_ns();
      transfers_.push_back(std::move(transfer));
    } catch (const std::exception&) {
      request->done({.fault = HttpFault::no_memory});
      continue;
    }
    send(*transfers_.back(), /*hedge=*/false);
  }
}

void Transport::Reactor::resume_due(std::uint64_t now) noexcept {
  for (std::size_t i = transfers_.size(); i-- > 0;) {  // send() may end it: then it leaves the list
    if (i >= transfers_.size()) continue;
    Transfer& transfer = *transfers_[i];
    if (!transfer.flying() && transfer.resume_ns <= now) send(transfer, /*hedge=*/false);
  }
}

void Transport::Reactor::send(Transfer& transfer, bool hedge) noexcept {
  Attempt* attempt = nullptr;
  try {
    if (idle_.empty()) {
      idle_.reserve(attempts_.size() + 1);
      attempts_.push_back(std::make_unique<Attempt>(curl_));
      idle_.push_back(attempts_.back().get());
    }
    attempt = idle_.back();
    ++transfer.tries;
    const AttemptSettings settings{.authorities = authorities_.c_str(), .by_proxy = by_proxy_};
    if (!attempt->start(transfer, settings, hedge)) {
      --transfer.tries;
      if (!hedge) wait_for_signer(transfer);
      return;
    }
    if (curl_.multi_add_handle(multi_, attempt->easy()) != CURLM_OK) throw std::bad_alloc();
  } catch (const std::exception& error) {
    if (attempt != nullptr) attempt->forget();
    if (hedge) return;  // the first one is still on its way
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    end(transfer,
        {.fault = memory ? HttpFault::no_memory : HttpFault::signer, .tries = transfer.tries - 1});
    return;
  }
  idle_.pop_back();
  transfer.attempts[hedge ? 1 : 0] = attempt;
  ++flying_;
  hedging_.sent();
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (hedge) {
    hedging_.hedged();
    hedges_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Transport::Reactor::wait_for_signer(Transfer& transfer) noexcept {
  const std::uint64_t now = now_ns();
  transfer.resume_ns = now + kSignerPauseNs;
  if (now < transfer.progress_ns + options_.retry.patience_ns) return;
  end(transfer, {.fault = HttpFault::signer, .tries = transfer.tries});
}

void Transport::Reactor::reap() noexcept {
  int left = 0;
  while (const CURLMsg* const message = curl_.multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto found =
        std::ranges::find(attempts_, message->easy_handle, [](const auto& a) { return a->easy(); });
    if (found != attempts_.end()) settle(**found, message->data.result);
  }
}

void Transport::Reactor::release(Attempt& attempt) noexcept {
  curl_.multi_remove_handle(multi_, attempt.easy());
  bytes_.fetch_add(attempt.received_bytes(), std::memory_order_relaxed);
  attempt.transfer()->attempts[attempt.hedge() ? 1 : 0] = nullptr;
  attempt.forget();
  idle_.push_back(&attempt);  // room was reserved when it was made
  --flying_;
}

// The transfer has left the list before done() is called: its owner may then destroy the request.
void Transport::Reactor::end(Transfer& transfer, const HttpResult& result) noexcept {
  for (Attempt* const attempt : std::array<Attempt*, 2>{transfer.attempts}) {
    if (attempt != nullptr) release(*attempt);
  }
  HttpRequest* const request = transfer.request;
  const auto place =
      std::ranges::find(transfers_, &transfer, [](const auto& t) { return t.get(); });
  std::swap(*place, transfers_.back());
  if (spare_transfers_.size() < kMostSpare) {
    try {
      spare_transfers_.push_back(std::move(transfers_.back()));
    } catch (const std::bad_alloc&) {
    }
  }
  transfers_.pop_back();
  request->done(result);
}

int Transport::Reactor::wait_ms(std::uint64_t now) const noexcept {
  if (transfers_.empty()) return waiting_.empty() ? kIdleMs : 0;
  std::uint64_t wait = patrol_every_ns();
  for (const auto& transfer : transfers_) {
    if (transfer->flying()) continue;
    wait = std::min(wait, transfer->resume_ns > now ? transfer->resume_ns - now : 0);
  }
  return static_cast<int>((wait + kMs - 1) / kMs);
}

}  // namespace lowtide
