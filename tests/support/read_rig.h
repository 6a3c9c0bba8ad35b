// read_rig.h - one engine over some files, and reads whose every byte is checked.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "engine/engine.h"
#include "os/ring.h"
#include "support/data_file.h"

namespace lowtide {

// A set that can be waited for.
class WaitedSet final : public ReadSet {
 public:
  explicit WaitedSet(std::span<const Read> wanted) { reads = wanted; }

  void done(const Outcome& outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    outcome_ = outcome;
    ++times_;
    changed_.notify_all();
  }
  Outcome wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return times_ > 0; });
    return outcome_;
  }
  int times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int times_ = 0;
  Outcome outcome_;
};

// Extents as reads into memory of their own, each target between two guard bytes.
class CheckedReads {
 public:
  static constexpr std::byte kGuard{0xA5};

  explicit CheckedReads(std::vector<Extent> extents) {
    std::size_t total = 1;
    for (const Extent& extent : extents) total += extent.size_bytes + 1;
    memory_.assign(total, kGuard);
    std::size_t at = 1;
    for (const Extent& extent : extents) {
      reads_.push_back({.from = extent, .into = memory_.data() + at});
      at += extent.size_bytes + 1;
    }
  }
  [[nodiscard]] std::span<const Read> reads() const { return reads_; }

  // Compares with what the files (by shard) hold; tells the first read that differs.
  void expect_bytes(const std::vector<const std::string*>& held) const {
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      const Extent& from = reads_[i].from;
      ASSERT_EQ(std::memcmp(reads_[i].into, held[from.shard]->data() + from.offset_bytes,
                            from.size_bytes),
                0)
          << "read " << i << ": " << from.size_bytes << " bytes at " << from.offset_bytes;
      ASSERT_EQ(reads_[i].into[-1], kGuard) << "before read " << i;
      ASSERT_EQ(reads_[i].into[from.size_bytes], kGuard) << "behind read " << i;
    }
  }

 private:
  std::vector<std::byte> memory_;
  std::vector<Read> reads_;
};

// Rows of one file that lie `step_bytes` apart.
inline std::vector<Extent> rows_apart(std::uint64_t count, std::uint32_t row_bytes,
                                      std::uint64_t step_bytes) {
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < count; ++i) {
    extents.push_back({.offset_bytes = i * step_bytes, .size_bytes = row_bytes, .shard = 0});
  }
  return extents;
}

struct EngineCase {
  EngineKind kind = EngineKind::automatic;
  CacheMode cache = CacheMode::keep;
  bool remote = false;  // the file is an object on a server

  [[nodiscard]] std::string name() const {
    const char* words[] = {"auto", "pread", "uring", "memory"};
    return std::string(words[static_cast<int>(kind)]) + (remote                     ? "_http"
                                                         : cache == CacheMode::keep ? "_keep"
                                                                                    : "_drop");
  }
};

inline std::vector<EngineCase> every_engine() {
  std::vector<EngineCase> cases;
  for (const EngineKind kind :
       {EngineKind::pread, EngineKind::uring, EngineKind::memory, EngineKind::automatic}) {
    for (const CacheMode cache : {CacheMode::keep, CacheMode::drop}) cases.push_back({kind, cache});
  }
  return cases;
}

// Why this engine cannot be tested here; empty: it can.
inline std::string why_not(EngineKind kind) {
  const std::string no_ring = kind == EngineKind::uring ? Ring::probe() : "";
  return no_ring.empty() ? "" : "no io_uring here: " + no_ring;
}

// A budget and an engine under it. Automatic never holds the data here: that is the memory engine's
// own case.
struct EngineRig {
  EngineRig(std::shared_ptr<Files> shards, const EngineCase& which, std::uint64_t budget_bytes)
      : files(std::move(shards)), budget(budget_bytes) {
    engine = open_engine(files, {.engine = which.kind, .cache = which.cache}, budget,
                         /*allow_memory=*/false);
  }

  std::shared_ptr<Files> files;
  Budget budget;
  std::unique_ptr<Engine> engine;
};

}  // namespace lowtide
