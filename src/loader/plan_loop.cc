#include "loader/plan_loop.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace lowtide {

PlanLoop::PlanLoop(const LookaheadInputs& inputs, const Schedule& schedule,
                   std::uint64_t first_turn, std::uint64_t most_ahead, Pool& pool,
                   BatchQueue& queue, Share& share)
    : in_(inputs),
      origin_turn_(first_turn),
      most_ahead_(most_ahead),
      share_(share),
      context_{.dataset = inputs.dataset,
               .order = inputs.order,
               .schedule = schedule,
               .pool = pool,
               .queue = queue,
               .sets = ReadSets(inputs.engine, queue),
               .last_turn = schedule.turns(),
               .next_turn = first_turn,
               .first_turn = first_turn} {
  make_planners();
  // If a claim on another thread takes the room first, grow() tries again later.
  if (!fit(share_.most_bytes())) (void)fit(0);
  // The pool may have come with the buffers of another run: those that fit into the room stay, and
  // one more for the batch that the consumer holds.
  const Room& room = context_.room;
  pool.keep(std::max({room.sweep, room.ahead, room.hot_ahead}) + 1);
}

void PlanLoop::run() noexcept {
  BatchQueue::News news = context_.queue.news();
  while (!news.stopping) {
    bool worked = true;
    std::exception_ptr error;
    try {
      worked = work(news);
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {  // passed on outside the handler, so that this thread no longer refers to it
      context_.queue.fail(std::move(error));
      failed_ = true;
    }
    news = worked ? context_.queue.news() : context_.queue.wait(planner_->wake_below());
    take_landed(news.landed);
  }
  end(news);
}

// Does one piece of work. False: there is nothing to do until there is news.
bool PlanLoop::work(const BatchQueue::News& news) {
  if (news.start_over) {
    // The kernel may still be writing into the buffers, so nothing is dropped before all sets land.
    context_.sets.cancel_all();
    if (context_.sets.flying() > 0) return false;
    start_over();
    return true;
  }
  if (failed_) return false;  // until the consumer's next call starts it over
  // Asked again each time, because data moves into and out of the page cache during an epoch.
  context_.prospect = in_.engine.prospect();
  grow();
  choose_planner();
  return planner_->work(news, may_plan_);
}

void PlanLoop::take_landed(LoaderSet* sets) {
  while (sets != nullptr) {
    LoaderSet* const next = sets->next_landed;
    context_.sets.landed(*sets);
    planner_->landed(*sets);
    sets = next;
  }
}

// Batches are delivered in order, so one planner must be idle before the other one begins.
void PlanLoop::choose_planner() {
  const bool sweep = sweep_->pays();
  Planner* const better = sweep ? static_cast<Planner*>(&*sweep_) : &*straight_;
  if (planner_ != better && planner_->idle()) {
    planner_ = better;
    if (!sweep) sweep_->free_memory();
  }
  may_plan_ = planner_ == better;
}

// If memory is so short that even this fails, only the least room is kept. gave_back() is called in
// any case, because a claim on another thread may be waiting for it.
void PlanLoop::start_over() {
  const BatchQueue::Restart restart = context_.queue.start_over();
  failed_ = false;
  context_.first_turn = context_.next_turn = origin_turn_ + restart.taken;
  try {
    drop();
    if (!fit(restart.most_bytes ? *restart.most_bytes : share_.most_bytes())) {
      (void)fit(share_bytes_);  // does not grow, and only growth can be refused
    }
  } catch (...) {
    (void)share_.resize(0);
    share_bytes_ = 0;
    context_.room.ahead = context_.room.hot_ahead = context_.room.sweep = 0;
    context_.queue.gave_back();
    throw;
  }
  context_.queue.gave_back();
}

// Requires that no reads are in flight.
void PlanLoop::drop() {
  make_planners();
  context_.sets.clear();
  context_.pool.keep(1);
}

void PlanLoop::make_planners() {
  straight_.emplace(context_);
  sweep_.emplace(context_);
  planner_ = &*straight_;
}

void PlanLoop::end(BatchQueue::News news) noexcept {
  context_.sets.cancel_all();
  while (context_.sets.flying() > 0) {
    news = context_.queue.wait(0);
    take_landed(news.landed);
  }
  straight_.reset();
  sweep_.reset();
  (void)share_.resize(0);
  context_.queue.end();
}

// Takes a share of at most this many bytes and looks ahead as far as it allows. False: the share
// was refused, and nothing changed.
bool PlanLoop::fit(std::uint64_t most_bytes) {
  const Room room = plan_room(in_.dataset, in_.order, context_.schedule, most_bytes, most_ahead_,
                              in_.engine.prospect().far);
  if (!share_.resize(room.elastic_bytes)) return false;
  share_bytes_ = room.elastic_bytes;
  context_.room = room;
  context_.sets.keep(std::max(room.ahead, kSweepSets));  // as many as plan_room() has counted
  return true;
}

// Other loaders may have ended and left memory. Growing by less than a third is not worth making
// new slots.
void PlanLoop::grow() {
  const std::uint64_t least_bytes = std::max<std::uint64_t>(1, share_bytes_ / 3 * 4);
  const std::uint64_t most_bytes = share_.most_bytes();
  if (most_bytes < least_bytes) return;
  const Room room = plan_room(in_.dataset, in_.order, context_.schedule, most_bytes, most_ahead_,
                              in_.engine.prospect().far);
  if (room.elastic_bytes >= least_bytes) (void)fit(most_bytes);
}

}  // namespace lowtide
