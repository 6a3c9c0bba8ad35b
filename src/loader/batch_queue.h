// batch_queue.h - passes finished batches from the planner thread to the consumer, and messages in
// both directions. The only state of a Lookahead that several threads touch.
//
// Batches are pushed in the order of their turns. An error is delivered after all batches that were
// pushed before it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <vector>

#include "core/mutex.h"
#include "loader/read_sets.h"
#include "lowtide/batch.h"

namespace lowtide {

class BatchQueue final : public LandingPlace {
 public:
  // For this many batches in total.
  explicit BatchQueue(std::uint64_t batches) : left_(batches) {}

  // For the consumer. The next batch; an empty one at the end and after cancel(); nullopt after
  // `timeout`. Throws the planner's error; the call after that makes the planner start over.
  [[nodiscard]] std::optional<Batch> next(std::chrono::milliseconds timeout)
      LOWTIDE_EXCLUDES(mutex_);
  // Whether next() needs no planner, because there are no more batches.
  [[nodiscard]] bool over() const LOWTIDE_EXCLUDES(mutex_);
  // Any thread.
  void cancel() noexcept LOWTIDE_EXCLUDES(mutex_);

  // For a thread that claims memory: makes the planner start over with at most this many bytes of
  // look-ahead. Waits until it holds no more than that, or has ended.
  void ask_back(std::uint64_t most_bytes) LOWTIDE_EXCLUDES(mutex_);

  // For the engine's threads.
  void landed(LoaderSet& set) noexcept override LOWTIDE_EXCLUDES(mutex_);

  // The rest is for the planner thread.

  struct News {
    bool stopping = false;
    bool start_over = false;      // until start_over() is called
    bool waiting = false;         // the consumer waits for a batch
    std::size_t ready = 0;        // batches in the queue
    LoaderSet* landed = nullptr;  // since the last news, linked by next_landed
  };
  [[nodiscard]] News news() LOWTIDE_EXCLUDES(mutex_);
  // Waits for something that the last news did not contain: a set that landed, a consumer that
  // waits, a request, or a batch that was taken if fewer than `wake_below` are left then.
  [[nodiscard]] News wait(std::size_t wake_below) LOWTIDE_EXCLUDES(mutex_);

  void push(Batch batch) LOWTIDE_EXCLUDES(mutex_);
  void push_all(std::vector<Batch>* batches) LOWTIDE_EXCLUDES(mutex_);
  // The planner pushes nothing more until it has started over.
  void fail(std::exception_ptr error) noexcept LOWTIDE_EXCLUDES(mutex_);

  // From where, and with how much look-ahead if ask_back() was called.
  struct Restart {
    std::uint64_t taken = 0;  // batches that the consumer has had
    std::optional<std::uint64_t> most_bytes;
  };
  // Drops what is in the queue. gave_back() must follow.
  [[nodiscard]] Restart start_over() LOWTIDE_EXCLUDES(mutex_);
  void gave_back() noexcept LOWTIDE_EXCLUDES(mutex_);

  // Between begin() and end() there is a planner that answers.
  void begin() noexcept LOWTIDE_EXCLUDES(mutex_);
  void end() noexcept LOWTIDE_EXCLUDES(mutex_);

 private:
  [[nodiscard]] bool has_answer() const LOWTIDE_REQUIRES(mutex_) {
    return stopping_ || left_ == 0 || error_ || !batches_.empty();
  }
  void stir() noexcept LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] News take_news() LOWTIDE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar planner_wakes_, consumer_wakes_, given_back_;
  std::deque<Batch> batches_ LOWTIDE_GUARDED_BY(mutex_);
  std::uint64_t left_ LOWTIDE_GUARDED_BY(mutex_);       // batches that the consumer has not had
  std::uint64_t taken_ LOWTIDE_GUARDED_BY(mutex_) = 0;  // and those that it has had
  std::exception_ptr error_ LOWTIDE_GUARDED_BY(mutex_);
  bool error_told_ LOWTIDE_GUARDED_BY(mutex_) = false;  // the next call tries again
  bool waiting_ LOWTIDE_GUARDED_BY(mutex_) = false;

  LoaderSet* landed_ LOWTIDE_GUARDED_BY(mutex_) = nullptr;
  bool stirred_ LOWTIDE_GUARDED_BY(mutex_) = false;  // there is news for the planner
  bool took_ LOWTIDE_GUARDED_BY(mutex_) = false;     // the consumer took a batch since the news
  std::size_t wake_below_ LOWTIDE_GUARDED_BY(mutex_) = 0;

  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
  bool start_over_ LOWTIDE_GUARDED_BY(mutex_) = false;
  std::optional<std::uint64_t> asked_back_ LOWTIDE_GUARDED_BY(mutex_);  // a request
  bool giving_back_ LOWTIDE_GUARDED_BY(mutex_) = false;  // the planner has taken the request
  bool running_ LOWTIDE_GUARDED_BY(mutex_) = false;      // there is a planner
};

}  // namespace lowtide
