#include "core/budget.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>

#include "core/checked.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kMostLimit = 1ULL << 62;
// A share asks for more only if it would get less than 1/kLittle of an equal part: asking makes the
// others drop what they have read ahead.
constexpr std::uint64_t kLittle = 4;

// The smallest spelling that parse_bytes reads as at least `bytes`. It stays in KiB as long as
// rounding up to a MiB would add a tenth or more.
std::string enough_for(std::uint64_t bytes) {
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + " MiB";
  if (bytes < 10 * kMiB) return std::to_string(round_up(bytes, kKiB) / kKiB) + " KiB";
  return std::to_string(bytes / kMiB + 1) + " MiB";
}

// The least limit under which all of `needed` fits; nullopt if no 64-bit number is large enough.
std::optional<std::uint64_t> sufficient_bytes(const std::vector<Budget::Entry>& needed) {
  std::uint64_t total_bytes = 0;
  const Budget::Entry* growing = nullptr;
  for (const Budget::Entry& entry : needed) {
    if (entry.divisor != 0) growing = &entry;
    if (!checked_add(total_bytes, entry.bytes, &total_bytes)) return std::nullopt;
  }
  if (growing == nullptr) return total_bytes;
  const std::uint64_t others_bytes = total_bytes - growing->bytes;
  const std::uint64_t grown_bytes =
      std::clamp(others_bytes / (growing->divisor - 1) + 1, growing->bytes,
                 std::max(growing->bytes, growing->most_bytes));
  return checked_add(others_bytes, grown_bytes, &total_bytes) ? std::optional(total_bytes)
                                                              : std::nullopt;
}

std::string refusal(std::uint64_t limit_bytes, const std::vector<Budget::Entry>& needed) {
  std::uint64_t total_bytes = 0;
  std::string list;
  for (const Budget::Entry& entry : needed) {
    total_bytes += entry.bytes;
    if (!list.empty()) list += " + ";
    list += format_bytes(entry.bytes) + " for " + entry.what;
  }
  const auto sufficient = sufficient_bytes(needed);
  if (!sufficient) {
    return "memory: " + format_bytes(limit_bytes) + " is too small: " + list +
           "; no size is large enough";
  }
  const std::string limit = format_bytes(limit_bytes);
  const std::string total = format_bytes(total_bytes);
  std::string lacking;  // "64.6 KiB is too small: ... = 64.6 KiB" would not help anybody
  if (limit == total) lacking = " by " + format_bytes(total_bytes - limit_bytes);
  if (needed.size() > 1) list += " = " + total;
  return "memory: " + limit + " is too small" + lacking + ": " + list + "; use at least " +
         enough_for(*sufficient);
}

// The least limit that is enough, in steps that enough_for() spells exactly.
std::optional<std::uint64_t> least_limit(std::uint64_t given_bytes,
                                         const std::function<bool(std::uint64_t)>& enough) {
  std::uint64_t high = round_up(given_bytes, kMiB);
  while (!enough(high)) {
    if (high > kMostLimit / 2) return std::nullopt;
    high *= 2;
  }
  const std::uint64_t step = high <= 10 * kMiB ? kKiB : kMiB;
  std::uint64_t low = round_down(given_bytes, step);
  while (high - low > step) {
    const std::uint64_t middle = low + round_down((high - low) / 2, step);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

std::uint64_t sum_of(const std::vector<Budget::Entry>& entries) {
  std::uint64_t sum = 0;
  for (const Budget::Entry& entry : entries) sum = saturating_add(sum, entry.bytes);
  return sum;
}

void refuse_limit(std::uint64_t limit_bytes, const std::string& work,
                  const std::function<bool(std::uint64_t)>& enough) {
  const std::optional<std::uint64_t> least = least_limit(limit_bytes, enough);
  throw std::invalid_argument(
      "memory: " + format_bytes(limit_bytes) + " is too small to " + work +
      (least ? "; use at least " + enough_for(*least) : "; no size is large enough"));
}

Claim& Claim::operator=(Claim&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void Claim::release() noexcept {
  if (Budget* const budget = std::exchange(budget_, nullptr)) budget->release(id_);
}

Claim Budget::claim(std::uint64_t bytes, std::string_view what) {
  std::vector<Claim> claims = claim_all({Entry{std::string(what), bytes}});
  return std::move(claims.front());
}

std::vector<Claim> Budget::claim_all(const std::vector<Entry>& entries) {
  // Everything that can throw comes before the first change: a Claim that is destroyed while the
  // lock is held would take the lock again.
  std::vector<Claim> claims;
  claims.reserve(entries.size());
  std::vector<Held> fresh;
  for (const Entry& entry : entries) fresh.push_back({0, entry});

  MutexLock lock(mutex_);
  for (;;) {
    std::uint64_t total_bytes = claimed_bytes_;
    bool fits = true;
    for (const Entry& entry : entries) {
      fits = fits && checked_add(total_bytes, entry.bytes, &total_bytes);
    }
    if (!fits || total_bytes > limit_bytes_) {
      std::vector<Entry> needed;
      for (const Held& held : held_) needed.push_back(held.entry);
      needed.insert(needed.end(), entries.begin(), entries.end());
      throw std::invalid_argument(refusal(limit_bytes_, needed));
    }
    if (shared_bytes_ <= limit_bytes_ - total_bytes) {
      held_.reserve(held_.size() + fresh.size());
      claimed_bytes_ = total_bytes;
      break;
    }
    ++waiting_claims_;
    const std::uint64_t part = (limit_bytes_ - total_bytes) / shares_.size();
    lock.unlock();
    std::exception_ptr failed;
    try {
      ask_shares(part);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    --waiting_claims_;
    if (failed) std::rethrow_exception(failed);
  }
  for (Held& held : fresh) {
    held.id = next_id_++;
    claims.push_back(Claim(this, held.id));
    held_.push_back(std::move(held));
  }
  return claims;
}

void Budget::ask_shares(std::uint64_t most_bytes) {
  const MutexLock asking(asking_);
  std::vector<Share*> shares;
  {
    const MutexLock lock(mutex_);
    shares = shares_;
  }
  for (Share* const share : shares) {
    if (share->bytes() > most_bytes) share->give_back_(*share, most_bytes);
  }
}

std::uint64_t Budget::free_bytes() const {
  const MutexLock lock(mutex_);
  return unused();
}

std::uint64_t Budget::claimable_bytes() const {
  const MutexLock lock(mutex_);
  return limit_bytes_ - claimed_bytes_;
}

std::vector<Budget::Entry> Budget::claims() const {
  const MutexLock lock(mutex_);
  std::vector<Entry> alive;
  alive.reserve(held_.size() + shares_.size());
  for (const Held& held : held_) alive.push_back(held.entry);
  for (const Share* share : shares_) {
    if (share->bytes_ > 0) alive.push_back({share->what_, share->bytes_});
  }
  return alive;
}

void Budget::release(std::uint64_t id) noexcept {
  const MutexLock lock(mutex_);
  const auto held =
      std::find_if(held_.begin(), held_.end(), [id](const Held& h) { return h.id == id; });
  if (held == held_.end()) return;
  claimed_bytes_ -= held->entry.bytes;
  held_.erase(held);
}

Share::Share(Budget& budget, std::string what, GiveBack give_back)
    : budget_(budget), what_(std::move(what)), give_back_(std::move(give_back)) {
  const MutexLock lock(budget_.mutex_);
  budget_.shares_.push_back(this);
  ++budget_.without_size_;
}

Share::~Share() {
  const MutexLock asking(budget_.asking_);
  const MutexLock lock(budget_.mutex_);
  budget_.shared_bytes_ -= bytes_;
  if (!has_size_) --budget_.without_size_;
  std::erase(budget_.shares_, this);
}

bool Share::resize(std::uint64_t bytes) {
  const MutexLock lock(budget_.mutex_);
  if (bytes > bytes_) {
    const bool others_wait =
        budget_.waiting_claims_ > 0 || (has_size_ && budget_.without_size_ > 0);
    if (others_wait || bytes - bytes_ > budget_.unused()) return false;
  }
  budget_.shared_bytes_ = budget_.shared_bytes_ - bytes_ + bytes;
  bytes_ = bytes;
  if (!std::exchange(has_size_, true)) --budget_.without_size_;
  return true;
}

std::uint64_t Share::bytes() const {
  const MutexLock lock(budget_.mutex_);
  return bytes_;
}

std::uint64_t Share::most_bytes() const {
  const MutexLock lock(budget_.mutex_);
  return budget_.unused() + bytes_;
}

void Share::ask_for_part() {
  std::uint64_t part = 0;
  {
    const MutexLock lock(budget_.mutex_);
    part = (budget_.limit_bytes_ - budget_.claimed_bytes_) / budget_.shares_.size();
    if (budget_.unused() + bytes_ >= part / kLittle) return;
  }
  budget_.ask_shares(part);
}

}  // namespace lowtide
