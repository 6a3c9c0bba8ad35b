// engine.h - HOW bytes come: a set of Reads goes in, bytes come out, an Outcome tells what became
// of it.
//
// Alignment, bounce buffers, sorting, merging, splitting and retries stay inside. Every engine
// gives the bytes that a plain pread would give. An Engine is opened on the calling thread and may
// throw then; once open it never throws: errors are data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/budget.h"
#include "core/extent.h"
#include "lowtide/array.h"

namespace lowtide {

class Files;

// What became of one set of reads. A completion queue has no caller to throw to, so the error is
// data here; the loader turns it into an exception with path and offset.
struct Outcome {
  int err = 0;             // errno of the first failure; 0 with `ended`: the file ended early
  bool ended = false;      // a read met the end of the file
  bool cancelled = false;  // given up because ReadSet::cancel() was called
  bool no_thread = false;  // `err` says why no thread could be started: nothing was read
  std::uint32_t read = 0;  // which one failed: its index in the set
  std::uint64_t found_bytes = 0;  // with `ended`: how far the file goes

  [[nodiscard]] bool ok() const { return err == 0 && !ended && !cancelled; }
};

// One set of reads under way. The caller owns it, its reads and their targets, and leaves all of
// them alone until done() was called. Reads may come in any order, overlap and repeat.
class ReadSet {
 public:
  virtual ~ReadSet() = default;

  // Called exactly once, by a thread of the engine (or inside submit, when nothing had to be waited
  // for). Must not block or throw; may submit further sets.
  virtual void done(const Outcome& outcome) noexcept = 0;

  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] virtual bool cancelled() const noexcept {
    return cancelled_.load(std::memory_order_relaxed);
  }

  std::span<const Read> reads;

 private:
  std::atomic<bool> cancelled_{false};
};

// Counters since the engine was opened; relaxed, so a reading taken while reads fly may be a little
// behind.
struct Traffic {
  std::uint64_t bytes_read = 0;
  std::uint64_t reads = 0;
  std::uint64_t merged = 0;
};

// What the loader needs to know to decide how far ahead it pays to look.
struct Prospect {
  bool resident = false;        // coming bytes are in memory: looking far ahead brings nothing
  bool held = false;            // we hold them ourselves: no order of reads is better than another
  std::uint32_t gap_bytes = 0;  // neighbours closer than this come together
};

class Engine {
 public:
  static constexpr std::size_t kMaxReads = 16384;  // in one set

  virtual ~Engine() = default;  // ends its threads; every set must be done

  // Requires 0 < set.reads.size() <= kMaxReads. Any thread.
  virtual void submit(ReadSet& set) noexcept = 0;

  // Submits and waits; works on the calling thread where that is faster. Any number of reads. Any
  // thread.
  [[nodiscard]] virtual Outcome read(std::span<const Read> reads) noexcept;

  // Somebody is about to read most of the data, perhaps more than once.
  virtual void expect_all() noexcept {}

  [[nodiscard]] virtual Prospect prospect() noexcept = 0;
  [[nodiscard]] virtual Traffic traffic() const noexcept = 0;
  // Whether all of the data is held, so that giving the engine up frees that much.
  [[nodiscard]] virtual bool holds_data() const noexcept { return false; }
  // The words of Stats::engine and Stats::engine_reason as of now.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string reason() const = 0;
};

struct EngineOptions {
  EngineKind kind = EngineKind::automatic;
  CacheMode cache = CacheMode::keep;  // decided by the caller: keep or drop
  bool allow_memory = true;           // automatic may hold all of the data if it fits
  bool past_cache = false;            // as if nothing were in the page cache
  std::optional<std::uint64_t> gap_bytes = std::nullopt;  // at most; as OpenOptions
};

// What an engine other than memory claims for its buffers under a budget of this size.
[[nodiscard]] Budget::Entry engine_buffers(std::uint64_t budget_bytes);

// Throws IoError for an engine asked for by name that is not available here, std::invalid_argument
// where the budget is too small for it.
[[nodiscard]] std::unique_ptr<Engine> open_engine(std::shared_ptr<Files> files,
                                                  const EngineOptions& options, Budget& budget);

}  // namespace lowtide
