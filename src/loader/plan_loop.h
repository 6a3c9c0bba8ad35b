// plan_loop.h - what the thread of a Lookahead does: it reads ahead of the consumer, with one
// planner at a time, as far as its share of the budget allows.
//
// When it must give some of the share back, it drops what was read ahead and starts over at the
// consumer's turn with less room. It takes more again when there is some. After a failed read it
// starts over too, when the consumer tries again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/budget.h"
#include "loader/planner.h"
#include "loader/straight.h"
#include "loader/sweep.h"

namespace lowtide {

// What a Lookahead works on. All of it must outlive the Lookahead.
struct LookaheadInputs {
  const Dataset& dataset;
  const Order& order;
  Engine& engine;
  Budget& budget;
  SpareBuffers* spare = nullptr;  // where buffers come from and go to, or nullptr
  std::shared_ptr<Accelerator> device =
      nullptr;  // copies from the batches, which are pinned for it
};

// Made by the consumer, then used by the planner thread only.
class PlanLoop {
 public:
  // Looks at most `most_ahead` batches ahead, if that is not 0.
  PlanLoop(const LookaheadInputs& inputs, const Schedule& schedule, std::uint64_t first_turn,
           std::uint64_t most_ahead, Pool& pool, BatchQueue& queue, Share& share);

  // Returns when the queue was cancelled and no read is in flight. Holds nothing then.
  void run() noexcept;

 private:
  [[nodiscard]] bool work(const BatchQueue::News& news);
  void take_landed(LoaderSet* sets);
  void choose_planner();
  void start_over();
  void drop();
  void make_planners();
  void end(BatchQueue::News news) noexcept;
  [[nodiscard]] bool fit(std::uint64_t most_bytes);
  void grow();

  const LookaheadInputs in_;
  const std::uint64_t origin_turn_;  // of the first batch that the consumer gets
  const std::uint64_t most_ahead_;
  Share& share_;
  std::uint64_t share_bytes_ = 0;  // its size
  PlanContext context_;
  std::optional<StraightPlanner> straight_;  // both always set
  std::optional<SweepPlanner> sweep_;
  Planner* planner_ = nullptr;  // the one in use
  bool may_plan_ = true;        // false: the other one is better, once this one is idle
  bool failed_ = false;         // the consumer must get an error first
};

}  // namespace lowtide
