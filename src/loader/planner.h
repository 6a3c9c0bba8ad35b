// planner.h - a way to read upcoming batches: in the order of their turns, or in file order. A
// PlanLoop has one of each and uses one at a time.
//
// Planners, and everything here, belong to the planner thread. No lock guards them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "dataset/dataset.h"
#include "engine/engine.h"
#include "loader/batch_queue.h"
#include "loader/pool.h"
#include "loader/read_sets.h"
#include "loader/room.h"
#include "loader/schedule.h"
#include "order/order.h"

namespace lowtide {

// What the planners of one loader share.
struct PlanContext {
  const Dataset& dataset;
  const Order& order;
  const Schedule& schedule;
  Pool& pool;
  BatchQueue& queue;
  ReadSets sets;
  const std::uint64_t last_turn;  // one past the last turn of the schedule

  Room room = {};
  Prospect prospect = {};        // the engine's latest
  std::uint64_t next_turn = 0;   // the first turn that is not planned yet
  std::uint64_t first_turn = 0;  // where reading started, or started over

  // The distance up to which the engine merges reads, as a share of the average distance of the
  // samples of a full sweep.
  [[nodiscard]] double merge_share() const;
  // A batch with the samples of a turn, whose bytes are to be read or made.
  [[nodiscard]] Batch make_batch(std::uint64_t turn, bool prefault = true) const;
  // The same with memory of `from`, laid out for reading. Samples of different sizes may need more
  // memory than it has.
  [[nodiscard]] Batch make_batch(Pool& from, std::uint64_t turn, bool prefault) const;
  // Makes the bytes of a batch from its samples as they were read.
  void deliver(const Batch& batch, std::uint64_t turn, const ReadSamples& read) const;
  // Checks a batch that is delivered as it was read. Throws FormatError.
  void check(const Batch& batch, std::uint64_t turn) const;
  // The exception that the user gets for a set that failed; `turn` is that of the sample.
  [[nodiscard]] std::exception_ptr failure(const LoaderSet& set, std::uint64_t turn) const noexcept;

  // The samples that are read into a batch of make_batch().
  [[nodiscard]] static ReadSamples read_into(const Batch& batch);
  // "epoch 0, step 3"
  [[nodiscard]] std::string step_text(std::uint64_t turn) const;

 private:
  [[nodiscard]] Batch with_samples(Batch batch, std::uint64_t turn) const;
};

class Planner {
 public:
  virtual ~Planner() = default;

  // Does one piece of work: first what the consumer may be waiting for, then what keeps the engine
  // busy. Plans further turns only if `may_plan`. False: there is nothing to do until a set lands
  // or the consumer wants something. Throws an error when all batches before it have been pushed;
  // after that the planner cannot be used any more.
  [[nodiscard]] virtual bool work(const BatchQueue::News& news, bool may_plan) = 0;
  // After work() returned false: the consumer's next batch matters once fewer than this many are
  // ready.
  [[nodiscard]] virtual std::size_t wake_below() const = 0;

  // A set of this planner has landed.
  virtual void landed(const LoaderSet& set) noexcept = 0;
  // Whether all planned turns are in the queue.
  [[nodiscard]] virtual bool idle() const = 0;
};

}  // namespace lowtide
