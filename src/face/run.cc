#include "face/run.h"

#include <new>
#include <utility>

#include "core/clock.h"
#include "loader/room.h"
#include "os/process_id.h"

namespace lowtide {
namespace {

constexpr std::chrono::hours kLongWait{
    1};  // a wait has no end, but not all clocks can express that

}  // namespace

Run::Run(RunInputs inputs, Schedule schedule)
    : in_(std::move(inputs)),
      pid_(process_id()),
      store_(in_.holder->store()),
      order_(in_.make_order()),
      schedule_(std::move(schedule)),
      turns_(schedule_.turns()) {
  start();
}

Run::~Run() {
  if (process_id() == pid_) {
    end();
  } else {
    leave_to_parent();
  }
}

Batch Run::next() {
  for (;;) {
    if (std::optional<Batch> batch = next_for(kLongWait)) return std::move(*batch);
  }
}

std::optional<Batch> Run::next_for(std::chrono::milliseconds timeout) {
  notice_fork();
  if (!lookahead_) {
    if (turn_ == turns_ || cancelled_) return Batch();
    start();  // in a forked child, or after a restart that failed to start
  }
  const std::uint64_t before = now_ns();
  std::optional<Batch> batch = lookahead_->next(timeout);
  const std::uint64_t waited = now_ns() - before;
  if (!batch) return std::nullopt;
  if (!*batch) {
    // Its claims become free for others as soon as the last batch was taken.
    if (turn_ == turns_) end();
    return Batch();
  }
  store_->count_delivered(batch->rows() * in_.dataset->sample_bytes(), waited);
  ++turn_;
  return batch;
}

void Run::restart(Schedule schedule, std::uint64_t turn) {
  notice_fork();
  end();
  schedule_ = std::move(schedule);
  turns_ = schedule_.turns();
  turn_ = turn;
  start();
}

Store& Run::store() {
  notice_fork();
  return *store_;
}

const Order& Run::order() {
  notice_fork();
  return *order_;
}

void Run::cancel() noexcept {
  if (process_id() != pid_) return;
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (lookahead_) lookahead_->cancel();
}

void Run::start() {
  store_->files().verify_open();
  std::vector<Budget::Entry> needs = least_room(*in_.dataset, schedule_);
  needs.insert(needs.end(), in_.holds.begin(), in_.holds.end());
  engine_ = store_->begin_run(needs);
  try {
    claims_ = store_->budget().claim_all(in_.holds);
    auto lookahead = std::make_unique<Lookahead>(
        LookaheadInputs{*in_.dataset, *order_, *engine_, store_->budget()}, schedule_, turn_,
        in_.most_ahead);
    store_->watch(lookahead->pool());
    const std::lock_guard lock(mutex_);
    if (cancelled_) lookahead->cancel();
    lookahead_ = std::move(lookahead);
  } catch (...) {
    end();
    throw;
  }
}

void Run::end() {
  std::unique_ptr<Lookahead> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(lookahead_);
  }
  ended.reset();
  claims_.clear();
  if (!engine_) return;
  engine_.reset();
  store_->end_run();
}

void Run::notice_fork() {
  if (process_id() == pid_) return;
  leave_to_parent();
  store_ = in_.holder->store_of_run();
  order_ = in_.make_order();
  pid_ = process_id();
}

// Leaks on purpose: the threads do not exist in this process, so nothing can be shut down here.
void Run::leave_to_parent() {
  new (&mutex_) std::mutex;
  (void)lookahead_.release();
  (void)order_.release();
  (void)new std::vector<Claim>(std::move(claims_));
  if (engine_) (void)new std::shared_ptr<Engine>(std::move(engine_));
  if (store_) (void)new std::shared_ptr<Store>(std::move(store_));
}

}  // namespace lowtide
