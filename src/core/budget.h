// budget.h - the bytes that one object of ours may hold.
//
// Whoever needs memory claims it by name before allocating it, in a constructor, and holds the
// Claim as long as the memory. A claim that does not fit is refused before the first read, with a
// text that lists every claim and the nearest `memory` that would do. Any thread.
#pragma once

#include <cstdint>
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

class Budget {
 public:
  struct Entry {
    std::string what;
    std::uint64_t bytes = 0;
  };

  explicit Budget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Throws std::invalid_argument when it does not fit, e.g.
  //   memory: 1 KiB is too little: one row 648 B + read buffers 64 KiB = 64.6 KiB;
  //   memory="65KiB" would do
  [[nodiscard]] Claim claim(std::uint64_t bytes, std::string_view what);

  // The same for several that are needed together: the text lists all of them.
  [[nodiscard]] std::vector<Claim> claim_all(const std::vector<Entry>& entries);

  [[nodiscard]] std::uint64_t limit_bytes() const { return limit_bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const;
  [[nodiscard]] std::vector<Entry> claims() const;  // those alive, oldest first

 private:
  friend class Claim;
  void release(std::uint64_t id) noexcept;

  struct Held {
    std::uint64_t id;
    Entry entry;
  };
  const std::uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::uint64_t claimed_bytes_ = 0;
  std::uint64_t next_id_ = 1;
  std::vector<Held> held_;
};

}  // namespace lowtide
