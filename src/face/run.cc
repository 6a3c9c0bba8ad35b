#include "face/run.h"

#include <utility>

#include "core/clock.h"
#include "loader/room.h"

namespace lowtide {
namespace {

constexpr std::chrono::hours kLongWait{1};  // next() has no end, but some clocks would overflow

}  // namespace

Run::Run(RunInputs inputs, Schedule schedule)
    : in_(std::move(inputs)),
      origin_(std::move(schedule)),
      live_(
          [this] { return std::make_unique<Live>(in_.holder->store_of_run(), in_.make_order()); }),
      schedule_(origin_),
      turns_(schedule_.turns()) {
  (void)in_.holder->store();  // throws if it is closed
  Live& live = live_.get();
  live.device = in_.device;
  (void)start(live);
}

Run::~Run() = default;

Batch Run::next() {
  for (;;) {
    if (std::optional<Batch> batch = next_for(kLongWait)) return std::move(*batch);
  }
}

std::optional<Batch> Run::next_for(std::chrono::milliseconds timeout) {
  Live& live = live_.get();
  Lookahead* lookahead = live.reading();
  if (lookahead == nullptr) {
    if (ended() || cancelled_) return Batch();
    lookahead = &start(live);  // in a forked child, or after a restart that failed to start
  }
  const std::uint64_t before = now_ns();
  if (in_.prepare && !live.prepared) {
    in_.prepare(*live.store);
    live.prepared = true;
  }
  std::optional<Batch> batch = lookahead->next(timeout);
  const std::uint64_t waited = now_ns() - before;
  if (!batch) return std::nullopt;
  if (!*batch) {
    if (ended()) live.end();  // its claims become free for others
    return Batch();
  }
  std::uint64_t bytes = batch->rows() * in_.dataset->sample_bytes();
  if (in_.dataset->ragged()) {
    bytes = 0;
    for (std::size_t i = 0; i < batch->columns(); ++i) bytes += batch->column(i).size();
  }
  live.store->count_delivered(bytes, waited);
  ++turn_;
  return batch;
}

void Run::cancel() noexcept {
  cancelled_ = true;
  Live* const live = live_.find();
  if (live == nullptr) return;
  const MutexLock lock(live->mutex);
  if (live->lookahead) live->lookahead->cancel();
}

Lookahead& Run::start(Live& live) {
  Store& store = *live.store;
  store.files().verify_open();
  std::vector<Budget::Entry> needs = least_room(*in_.dataset, schedule_);
  needs.insert(needs.end(), in_.holds.begin(), in_.holds.end());
  const bool claims_beside = in_.beside_bytes != 0 && live.beside.empty();
  if (claims_beside)
    needs.push_back({.what = "work beside the batches", .bytes = in_.beside_bytes});
  live.engine = store.begin_run(needs);
  try {
    if (claims_beside) {
      (void)store.budget().claim_all(needs);  // a refusal lists all of them
      live.beside = store.budget().claim_all({needs.back()});
    }
    live.claims = store.budget().claim_all(in_.holds);
    auto lookahead =
        std::make_unique<Lookahead>(LookaheadInputs{*in_.dataset, *live.order, *live.engine,
                                                    store.budget(), &store.spare(), live.device},
                                    schedule_, turn_, in_.most_ahead);
    store.watch(lookahead->pool());
    const MutexLock lock(live.mutex);
    if (cancelled_) lookahead->cancel();
    live.lookahead = std::move(lookahead);
    return *live.lookahead;
  } catch (...) {
    live.end();
    throw;
  }
}

void Run::restart(Schedule schedule) {
  Live& live = live_.get();
  live.end();
  schedule_ = std::move(schedule);
  turns_ = schedule_.turns();
  turn_ = 0;
  (void)start(live);
}

Lookahead* Run::Live::reading() {
  const MutexLock lock(mutex);
  return lookahead.get();
}

void Run::Live::end() {
  std::unique_ptr<Lookahead> ended;
  {
    const MutexLock lock(mutex);
    ended = std::move(lookahead);
  }
  ended.reset();
  claims.clear();
  if (!engine) return;
  engine.reset();
  store->end_run();
}

}  // namespace lowtide
