// budget.h - the bytes that one object of ours may hold.
//
// Code that needs memory claims it by name before it allocates, in a constructor, and holds the
// Claim as long as the memory. A claim that does not fit is refused before the first read, with a
// text that lists every claim and the nearest `memory` that would do.
//
// Memory that its owner can do without, such as batches ahead, is a Share. Shares never stand in
// the way of a claim: the budget asks their owners to give some of it back. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lowtide {

class Budget;

// Gives its bytes back when destroyed. Movable. Does not outlive the Budget.
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

// What its owner holds beyond what it needs. Does not outlive the Budget.
class Share {
 public:
  // Called when a claim needs room, by the claiming thread and without a lock that resize() takes.
  // On return the owner has brought its share down to `most_bytes` with resize().
  using GiveBack = std::function<void(Share& share, std::uint64_t most_bytes)>;

  // Starts with no bytes.
  Share(Budget& budget, std::string what, GiveBack give_back);
  ~Share();  // waits for a call of give_back
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Smaller always succeeds. Larger takes free bytes only and asks nobody: false, and nothing has
  // changed, where they are too few, while a claim waits for room, and, once this share has a size,
  // while another share has none yet.
  [[nodiscard]] bool resize(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const;
  // How large it could become now: what is free, and its own.
  [[nodiscard]] std::uint64_t most_bytes() const;
  // If little is left for this share, asks the owners of the others to come down to an equal part.
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
    // Not 0: under a larger limit it takes limit / divisor, up to most_bytes.
    std::uint64_t divisor = 0;
    std::uint64_t most_bytes = 0;
  };

  explicit Budget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Takes room from shares if it must. Throws std::invalid_argument when it does not fit, e.g.
  //   memory: 1 KiB is too little: one row 648 B + read buffers 64 KiB = 64.6 KiB;
  //   65KiB would do
  [[nodiscard]] Claim claim(std::uint64_t bytes, std::string_view what);

  // The same for several that are needed together: the text lists all of them.
  [[nodiscard]] std::vector<Claim> claim_all(const std::vector<Entry>& entries);

  [[nodiscard]] std::uint64_t limit_bytes() const { return limit_bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const;
  // What claims can have if every share is given back.
  [[nodiscard]] std::uint64_t claimable_bytes() const;
  // Claims that are alive, oldest first, then shares.
  [[nodiscard]] std::vector<Entry> claims() const;

 private:
  friend class Claim;
  friend class Share;
  void release(std::uint64_t id) noexcept;
  void ask_shares(std::uint64_t most_bytes);
  // With the lock held.
  [[nodiscard]] std::uint64_t unused() const {
    return limit_bytes_ - claimed_bytes_ - shared_bytes_;
  }

  struct Held {
    std::uint64_t id;
    Entry entry;
  };
  const std::uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::uint64_t claimed_bytes_ = 0;  // without shares
  std::uint64_t shared_bytes_ = 0;
  std::uint64_t next_id_ = 1;
  std::vector<Held> held_;
  std::vector<Share*> shares_;
  int waiting_claims_ = 0;
  int without_size_ = 0;  // shares
  std::mutex asking_;     // held while owners are asked: no share goes away. Taken before mutex_
};

}  // namespace lowtide
