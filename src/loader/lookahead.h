// lookahead.h - WHEN: turns a data set, an order and an engine into batches, ahead of the consumer
// and within the budget.
//
// One thread plans. Bytes in memory are read directly into the upcoming batches, only as many ahead
// as keep the engine busy. Bytes on a disk are read through Staging, as far ahead as the budget
// allows, if the upcoming reads are so close together that neighbours can be merged. It starts with
// one batch and doubles, so that the first batch comes at once. It does not stop between epochs.
//
// What it holds beyond the least is a Share of the budget. When it must give some back, the planner
// drops what was read ahead and starts over at the consumer's step with less room. It takes more
// again when there is some. After a failed read it starts over too, when the consumer tries again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/budget.h"
#include "dataset/dataset.h"
#include "engine/engine.h"
#include "loader/direct.h"
#include "loader/pool.h"
#include "loader/room.h"
#include "loader/schedule.h"
#include "loader/staging.h"
#include "order/order.h"

namespace lowtide {

// What a Lookahead works on. All of it must outlive the Lookahead.
struct LookaheadInputs {
  const Dataset& dataset;
  const Order& order;
  Engine& engine;
  Budget& budget;
};

// One consumer at a time; cancel() from any thread.
class Lookahead {
 public:
  // Claims memory for at least one batch; otherwise throws std::invalid_argument, which says what
  // was needed. Uses what is free for at most `most_ahead` batches ahead (0: as many as pay off).
  // Starts at schedule turn `first_step`; in this class a step is a turn of the schedule.
  Lookahead(const LookaheadInputs& inputs, const Schedule& schedule, std::uint64_t first_step,
            std::uint64_t most_ahead = 0);
  ~Lookahead();  // cancels; waits for the reads that the kernel has started
  Lookahead(const Lookahead&) = delete;
  Lookahead& operator=(const Lookahead&) = delete;

  // The next batch; an empty one at the end and after cancel(); nullopt after `timeout`. Rethrows
  // the first error of a read; the next call tries that read again.
  [[nodiscard]] std::optional<Batch> next(std::chrono::milliseconds timeout);
  void cancel() noexcept;

  [[nodiscard]] std::shared_ptr<const Pool> pool() const { return pool_; }

 private:
  struct Group;
  struct Coming;
  struct Piece;

  void start();
  [[nodiscard]] bool fit(std::uint64_t most_bytes);
  void grow();
  void give_back(std::uint64_t most_bytes);
  void cancel_reads();
  [[nodiscard]] bool reads_flying() const;
  void drop();
  void start_over();
  void run();
  void work(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::exception_ptr with_step(const std::invalid_argument& misfit) const noexcept;
  void fail(std::unique_lock<std::mutex>& lock, std::exception_ptr error);
  [[nodiscard]] bool advance(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool finish(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool gather(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool read_window(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool read_direct(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool plan_group(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool plan_window(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool wait_until_left(std::size_t batches);
  [[nodiscard]] std::uint64_t most_together() const;
  [[nodiscard]] bool staging_pays();
  [[nodiscard]] std::unique_ptr<Coming> make_batch(std::uint64_t step);
  [[nodiscard]] Piece* free_piece();
  void submit(Piece& piece, std::unique_lock<std::mutex>& lock);
  void landed(Piece& piece, const Outcome& outcome) noexcept;
  void record(const Piece& piece, const Outcome& outcome);
  [[nodiscard]] std::string step_text(std::uint64_t step) const;
  [[nodiscard]] std::string step_text(const Piece& piece, const std::byte* into) const;

  const LookaheadInputs in_;
  const Schedule schedule_;
  const std::uint64_t last_step_;
  const std::uint64_t most_ahead_;
  std::vector<Claim> claims_;
  std::optional<Share> share_;          // always set; destroyed before what give_back() uses
  std::uint64_t share_bytes_ = 0;       // its size, as the planner knows it
  std::size_t ahead_ = 0;               // the most batches being read or ready
  std::size_t hot_ahead_ = 0;           // the same if the data is in memory
  std::uint64_t piece_samples_ = 0;     // per set of reads
  std::uint64_t raw_offset_bytes_ = 0;  // in a buffer: where samples as read are, if not delivered
  std::shared_ptr<Pool> pool_;
  std::uint32_t slots_ = 0;
  std::unique_ptr<Staging> staging_;  // made when needed, released while the data is in memory
  std::optional<Direct> direct_;
  std::uint64_t first_step_;        // where the planner started, or started over
  std::uint64_t next_plan_step_;    // the first step that is not planned yet
  std::uint64_t window_steps_ = 1;  // of the next window; doubles
  Prospect prospect_;               // the engine's latest
  Window delivering_, reading_;
  std::uint64_t group_steps_ = 1;         // of the next group; doubles
  std::uint64_t group_step_ = 0;          // the first step of this one
  std::vector<const std::byte*> staged_;  // samples of the batch that is being made
  std::uint64_t making_step_ = 0;

  std::mutex mutex_;
  std::condition_variable planner_wakes_, consumer_wakes_, given_back_;
  std::deque<std::unique_ptr<Coming>> coming_;  // in step order: being read, or ready
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::exception_ptr error_;
  bool error_told_ = false;  // the consumer knows of error_; its next call tries again
  std::uint64_t next_step_;  // of the consumer
  bool waiting_ = false;     // whether the consumer waits
  std::size_t wake_at_ = 0;  // batches left at which the planner has something to do
  bool stopping_ = false;
  bool start_over_ = false;                    // from the consumer's step: drop what is ahead
  std::optional<std::uint64_t> give_back_to_;  // a request: bytes that the share may keep
  bool ended_ = false;                         // the planner has ended and holds nothing
  std::thread planner_;
};

}  // namespace lowtide
