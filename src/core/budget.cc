#include "core/budget.h"

#include <algorithm>
#include <stdexcept>

#include "core/checked.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;

// The smallest spelling that parse_bytes reads as at least `bytes`. In KiB while a whole MiB would
// be a tenth too much or more.
std::string enough_for(std::uint64_t bytes) {
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "MiB";
  if (bytes < 10 * kMiB) return std::to_string(round_up(bytes, kKiB) / kKiB) + "KiB";
  return std::to_string(bytes / kMiB + 1) + "MiB";
}

std::string refusal(std::uint64_t limit_bytes, const std::vector<Budget::Entry>& needed) {
  std::uint64_t total_bytes = 0;
  bool countable = true;
  std::string list;
  for (const Budget::Entry& entry : needed) {
    countable = countable && checked_add(total_bytes, entry.bytes, &total_bytes);
    if (!list.empty()) list += " + ";
    list += entry.what + " " + format_bytes(entry.bytes);
  }
  if (!countable) {
    return "memory: " + format_bytes(limit_bytes) + " is too little: " + list +
           "; no memory would do";
  }
  std::string limit = format_bytes(limit_bytes);
  std::string total = format_bytes(total_bytes);
  if (limit == total) {  // "64.6 KiB is too little: 64.6 KiB" would help nobody
    limit = std::to_string(limit_bytes) + " B";
    total = std::to_string(total_bytes) + " B";
  }
  if (needed.size() > 1) list += " = " + total;
  return "memory: " + limit + " is too little: " + list + "; memory=\"" + enough_for(total_bytes) +
         "\" would do";
}

}  // namespace

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
  // All that can throw comes before the first change: a Claim destroyed under the lock would
  // take the lock again.
  std::vector<Claim> claims;
  claims.reserve(entries.size());
  std::vector<Held> fresh;
  for (const Entry& entry : entries) fresh.push_back({0, entry});

  const std::lock_guard lock(mutex_);
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
  held_.reserve(held_.size() + fresh.size());
  for (Held& held : fresh) {
    held.id = next_id_++;
    claims.push_back(Claim(this, held.id));
    held_.push_back(std::move(held));
  }
  claimed_bytes_ = total_bytes;
  return claims;
}

std::uint64_t Budget::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return limit_bytes_ - claimed_bytes_;
}

std::vector<Budget::Entry> Budget::claims() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> alive;
  alive.reserve(held_.size());
  for (const Held& held : held_) alive.push_back(held.entry);
  return alive;
}

void Budget::release(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto held =
      std::find_if(held_.begin(), held_.end(), [id](const Held& h) { return h.id == id; });
  if (held == held_.end()) return;
  claimed_bytes_ -= held->entry.bytes;
  held_.erase(held);
}

}  // namespace lowtide
