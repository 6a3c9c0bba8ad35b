// What the reactor makes of attempts that ended, and of those that should.
#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/hash.h"
#include "http/reactor.h"
#include "http/redirect.h"

namespace lowtide {
namespace {

// How often slow and cancelled requests are looked for; more often where servers answer fast.
constexpr std::uint64_t kPatrolNs = 40 * kMs;
constexpr std::uint64_t kShortPatrolNs = 5 * kMs;
constexpr std::uint32_t kTriesWithoutRange = 3;

}  // namespace

std::uint64_t Transport::Reactor::patrol_every_ns() const noexcept {
  const std::uint64_t threshold = hedging_.threshold_ns();
  return threshold != 0 && threshold < 4 * kPatrolNs ? kShortPatrolNs : kPatrolNs;
}

// One attempt has ended, well or not.
void Transport::Reactor::settle(Attempt& attempt, CURLcode code) noexcept {
  Transfer& transfer = *attempt.transfer();
  const HttpResult result = attempt.finish(code);
  if (attempt.first_byte_ns() != 0) hedging_.first_byte_after(attempt.first_byte_ns());
  answered_ = answered_ || result.status != 0;
  const bool redirects = result.fault == HttpFault::status && is_redirect(result.status);
  const bool follows = redirects && follow(transfer, attempt.answer());
  const std::uint64_t retry_after_s = attempt.answer().retry_after_s;
  release(attempt);
  if (result.ok()) {
    const std::uint64_t now = now_ns();
    // Answers that come together end one after the other: a line says that the limit is used.
    const bool full = !waiting_.empty() || transfers_.size() >= limit();
    cap_.ended(now, transfer.request->size_bytes, full);
    end(transfer, result);
  } else if (transfer.flying()) {
    return;  // the other attempt goes on
  } else if (follows) {
    send(transfer, /*hedge=*/false);
  } else if (redirects) {
    end(transfer, {.fault = HttpFault::redirect, .status = result.status, .tries = result.tries});
  } else {
    failed(transfer, result, retry_after_s);
  }
}

bool Transport::Reactor::follow(Transfer& transfer, const Answer& answer) noexcept try {
  if (++transfer.redirects > kMostRedirects) return false;
  const std::optional<Address> to = redirected(transfer.target, answer.location);
  if (!to) return false;
  const bool same = to->origin() == transfer.target.origin() && !transfer.redirected;
  Address next = *to;
  if (same) next.user_info = transfer.target.user_info;
  transfer.redirected = transfer.redirected || !same;
  transfer.target = std::move(next);
  return true;
} catch (const std::exception&) {
  return false;
}

bool Transport::Reactor::may_retry(const Transfer& transfer, const HttpResult& result,
                                   std::uint64_t now) const noexcept {
  // The object was opened with a range, so the server knows them: some answer 200 if they fail
  // inside.
  if (result.fault == HttpFault::no_range && !transfer.request->opens) {
    return transfer.tries < kTriesWithoutRange;
  }
  if (!is_transient(result)) return false;
  // All bytes came, and then the answer broke: it promised more than the range. So would the next.
  if (transfer.reached_bytes == transfer.request->size_bytes) return false;
  if (!answered_ && transfer.tries >= options_.retry.tries_of_unknown_host &&
      result.fault != HttpFault::stalled) {
    return false;
  }
  return now < transfer.progress_ns + options_.retry.patience_ns;
}

void Transport::Reactor::failed(Transfer& transfer, const HttpResult& result,
                                std::uint64_t retry_after_s) noexcept {
  const std::uint64_t now = now_ns();
  if (result.fault == HttpFault::status && (result.status == 429 || result.status == 503)) {
    cap_.overloaded(now);
  }
  const bool refused =
      result.fault == HttpFault::expired ||
      (result.fault == HttpFault::status && (result.status == 401 || result.status == 403));
  // What a redirect led to may have expired, and the signer may know a newer signature.
  if (refused && !transfer.asked_again &&
      (transfer.redirected || transfer.request->object->signer != nullptr)) {
    try {
      transfer.target = parse_http(transfer.request->object->url);
      transfer.asked_again = transfer.sign_again = true;
      transfer.redirected = false;
      transfer.redirects = 0;
      send(transfer, /*hedge=*/false);
      return;
    } catch (const std::exception&) {
    }
  }
  if (!may_retry(transfer, result, now)) {
    end(transfer, result);
    return;
  }
  // An opening is read from its begin again: no version protects what was reached.
  if (transfer.request->opens) transfer.reached_bytes = 0;
  random_ = mix64(random_ + kGolden64);
  transfer.resume_ns = now + pause_ns(options_.retry, transfer.tries, random_, retry_after_s);
  retries_.fetch_add(1, std::memory_order_relaxed);
}

void Transport::Reactor::patrol(std::uint64_t now) noexcept {
  if (now - patrolled_ns_ < patrol_every_ns()) return;
  patrolled_ns_ = now;
  drop_cancelled();
  for (std::size_t i = transfers_.size(); i-- > 0;) {
    if (i < transfers_.size()) patrol_one(*transfers_[i], now);
  }
}

void Transport::Reactor::patrol_one(Transfer& transfer, std::uint64_t now) noexcept {
  if (transfer.request->cancelled()) {
    end(transfer, {.fault = HttpFault::cancelled, .tries = transfer.tries});
    return;
  }
  if (!transfer.flying()) return;  // it waits for its next try
  HttpResult stalled{.fault = HttpFault::stalled};
  for (Attempt* const attempt : std::array<Attempt*, 2>{transfer.attempts}) {
    if (attempt == nullptr) continue;
    if (attempt->silent_ns(now) < options_.retry.stall_ns * std::max(1U, transfer.tries)) continue;
    stalled.status = attempt->answer().status;
    release(*attempt);
  }
  if (!transfer.flying()) {
    stalled.tries = transfer.tries;
    failed(transfer, stalled, 0);
    return;
  }
  const Remote& object = *transfer.request->object;
  const bool versioned = !object.etag.empty() || !object.modified.empty();
  Attempt* const first = transfer.attempts[0];
  if (options_.hedge && versioned && first != nullptr && transfer.attempts[1] == nullptr &&
      hedging_.allowed() && first->silent_ns(now) > hedging_.threshold_ns()) {
    send(transfer, /*hedge=*/true);
  }
}

void Transport::Reactor::drop_cancelled() noexcept {
  for (std::size_t i = waiting_.size(); i-- > 0;) {
    if (i >= waiting_.size() || !waiting_[i]->cancelled()) continue;
    HttpRequest* const request = waiting_[i];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    request->done({.fault = HttpFault::cancelled});
  }
}

}  // namespace lowtide
