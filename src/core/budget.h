// budget.h - the bytes that one Array, Tokens or Loader may hold.
//
// Code that needs memory claims it by name in a constructor, before it allocates, and holds the
// Claim for as long as the memory. A claim that does not fit is refused before the first read. The
// message lists every claim and the smallest `memory` that is enough.
//
// Memory that its owner can do without, such as batches ahead, is a Share. Shares never block a
// claim: the budget asks their owners to give some of it back. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace lowtide {

class Budget;

// Returns its bytes to the budget when destroyed. Movable. Must not outlive the Budget.
class Claim {
 public:
  Claim() = default;
  Claim(Claim&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), id_(other.id_) {}
  Claim& operator=(Claim&& other) noexcept;
  ~Claim() { release(); }

  void release() noexcept;

 private:
  friend class Budget;
  Claim(Budget* budget, std::uint64_t id) : budget_(budget), id_(id) {}
  Budget* budget_ = nullptr;
  std::uint64_t id_ = 0;
};

// Memory that its owner holds beyond what it needs. Must not outlive the Budget.
class Share {
 public:
  // Called when a claim needs room, on the claiming thread and without a lock that resize() takes.
  // Before it returns, the owner must have reduced its share to `most_bytes` with resize().
  using GiveBack = std::function<void(Share& share, std::uint64_t most_bytes)>;

  // Starts with no bytes.
  Share(Budget& budget, std::string what, GiveBack give_back);
  ~Share();  // waits for a give_back call in progress
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Shrinking always succeeds. Growing takes free bytes only and asks no other owner. It returns
  // false and changes nothing if too few bytes are free, while a claim waits for room, or, once
  // this share has a size, while another share has none yet.
  [[nodiscard]] bool resize(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const;
  // How large it could become now: its own bytes and the free ones.
  [[nodiscard]] std::uint64_t most_bytes() const;
  // If little is left for this share, asks the owners of the others to reduce theirs to an equal
  // part.
  void ask_for_part();

 private:
  friend class Budget;
  Budget& budget_;
  const std::string what_;
  const GiveBack give_back_;
  // Guarded by the budget.
  std::uint64_t bytes_ = 0;
  bool has_size_ = false;
};

class Budget {
 public:
  struct Entry {
    std::string what;
    std::uint64_t bytes = 0;
    // If not 0, the entry takes limit / divisor under a larger limit, up to most_bytes.
    std::uint64_t divisor = 0;
    std::uint64_t most_bytes = 0;
  };

  explicit Budget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Takes room from shares if necessary. Throws std::invalid_argument if it does not fit, e.g.
  //   memory: 1 KiB is too small: 648 B for one row + 64 KiB for read buffers = 64.6 KiB; use at
  //   least 65 KiB
  [[nodiscard]] Claim claim(std::uint64_t bytes, std::string_view what);

  // The same for several claims that are needed together: the message lists all of them.
  [[nodiscard]] std::vector<Claim> claim_all(const std::vector<Entry>& entries);

  [[nodiscard]] std::uint64_t limit_bytes() const { return limit_bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const;
  // What claims can get if every share is given back.
  [[nodiscard]] std::uint64_t claimable_bytes() const;
  // The current claims, oldest first, then the shares.
  [[nodiscard]] std::vector<Entry> claims() const;

 private:
  friend class Claim;
  friend class Share;
  void release(std::uint64_t id) noexcept;
  void ask_shares(std::uint64_t most_bytes) LOWTIDE_EXCLUDES(asking_, mutex_);
  [[nodiscard]] std::uint64_t unused() const LOWTIDE_REQUIRES(mutex_) {
    return limit_bytes_ - claimed_bytes_ - shared_bytes_;
  }

  struct Held {
    std::uint64_t id;
    Entry entry;
  };
  const std::uint64_t limit_bytes_;
  mutable Mutex mutex_;
  std::uint64_t claimed_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;  // without shares
  std::uint64_t shared_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_id_ LOWTIDE_GUARDED_BY(mutex_) = 1;
  std::vector<Held> held_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<Share*> shares_ LOWTIDE_GUARDED_BY(mutex_);
  int waiting_claims_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  int without_size_ LOWTIDE_GUARDED_BY(mutex_) = 0;  // shares that have no size yet
  // Held while owners are asked, so that no share is destroyed meanwhile; taken before mutex_.
  Mutex asking_;
};

// UINT64_MAX if that is too small.
[[nodiscard]] std::uint64_t sum_of(const std::vector<Budget::Entry>& entries);

// Throws std::invalid_argument for work whose parts grow with the limit: their sum under a limit
// that is too small does not say which one would do, so limits are tried. `enough` says whether one
// would do. E.g.
//   memory: 1 KiB is too small to merge 2.5 MiB; use at least 761 KiB
[[noreturn]] void refuse_limit(std::uint64_t limit_bytes, const std::string& work,
                               const std::function<bool(std::uint64_t limit_bytes)>& enough);

}  // namespace lowtide
