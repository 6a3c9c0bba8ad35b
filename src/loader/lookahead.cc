#include "loader/lookahead.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine/outcome.h"

namespace lowtide {
namespace {

constexpr std::size_t kReadyAhead = 3;          // batches gathered before they are asked for
constexpr std::uint64_t kSpareBatches = 4;      // slots beyond a window: they carry over its end
constexpr std::size_t kPieces = kStagedPieces;  // sets of reads in flight, at least
constexpr std::uint64_t kSetReads = 128;        // of a set that is worth its hand-over
constexpr double kLeastMergeShare = 0.1;  // of gap to spacing: below, looking far brings nothing

}  // namespace

// Batches that are read together: they are ready together.
struct Lookahead::Group {
  std::uint64_t left = 0;  // sample parts that have not come
};

// A batch on its way to the consumer.
struct Lookahead::Coming {
  Lease lease;
  std::uint64_t step = 0;
  std::shared_ptr<Group> group;  // nullptr: gathered from a window
  bool made = true;              // false: it must be made of what was read

  [[nodiscard]] bool landed() const { return group == nullptr || group->left == 0; }
  [[nodiscard]] bool ready() const { return made && landed(); }
};

// One set of reads on its way, for a group or for the window that is being read.
struct Lookahead::Piece final : ReadSet {
  Lookahead* loader = nullptr;
  std::shared_ptr<Group> group;                 // nullptr: the window
  std::uint64_t first_step = 0, last_step = 0;  // to which its samples belong
  bool flying = false;
  std::vector<std::uint64_t> samples;
  std::vector<std::byte*> targets;
  std::vector<Read> storage;

  void done(const Outcome& outcome) noexcept override { loader->landed(*this, outcome); }
};

Lookahead::Lookahead(const LookaheadInputs& inputs, const Schedule& schedule,
                     std::uint64_t first_step, std::uint64_t most_ahead)
    : in_(inputs),
      schedule_(schedule),
      first_step_(first_step),
      last_step_(schedule.turns()),
      direct_(inputs.dataset, inputs.order),
      next_plan_step_(first_step),
      next_step_(first_step) {
  claims_ = in_.budget.claim_all(least_room(in_.dataset, schedule_));
  const Room room = claim_room(most_ahead);
  ahead_ = room.ahead;
  hot_ahead_ = room.hot_ahead;
  slots_ = static_cast<std::uint32_t>(room.slots);
  raw_offset_bytes_ = room.raw_offset_bytes;
  piece_samples_ =
      std::min<std::uint64_t>(room.piece_samples, Engine::kMaxReads / in_.dataset.reads_per_part());
  pool_ = std::make_shared<Pool>(room.buffer_bytes, std::min(schedule_.batch_size, schedule_.size),
                                 ahead_ + 1);
  const std::uint64_t steps_left = last_step_ - std::min(first_step, last_step_);
  const bool most = steps_left > in_.dataset.size() / schedule_.batch_size / 2;
  if (steps_left > 1 && most) in_.engine.expect_all();
  for (std::size_t i = 0; i < std::max<std::size_t>(ahead_, kPieces); ++i) {
    pieces_.push_back(std::make_unique<Piece>());
    pieces_.back()->loader = this;
  }
  planner_ = std::thread([this] { run(); });
}

Room Lookahead::claim_room(std::uint64_t most_ahead) {
  for (;;) {
    const Room room =
        plan_room(in_.dataset, in_.order, schedule_, in_.budget.free_bytes(), most_ahead);
    if (room.elastic_bytes == 0) return room;
    try {
      claims_.push_back(in_.budget.claim(room.elastic_bytes, "batches ahead"));
      return room;
    } catch (const std::invalid_argument&) {
      // Another loader was faster: what it left is measured again.
    }
  }
}

Lookahead::~Lookahead() {
  cancel();
  planner_.join();
  std::unique_lock lock(mutex_);
  for (const auto& piece : pieces_) piece->cancel();
  planner_wakes_.wait(lock, [&] {
    return std::none_of(pieces_.begin(), pieces_.end(),
                        [](const auto& piece) { return piece->flying; });
  });
  pool_->keep(0);  // batches that are kept must not keep the rest of it
}

void Lookahead::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  planner_wakes_.notify_all();
  consumer_wakes_.notify_all();
}

std::optional<Lease> Lookahead::next(std::chrono::milliseconds timeout, bool* timed_out) {
  std::unique_lock lock(mutex_);
  *timed_out = false;
  const auto ready = [&] {
    return stopping_ || error_ || next_step_ >= last_step_ ||
           (!coming_.empty() && coming_.front()->ready());
  };
  if (!ready()) {
    waiting_ = true;
    planner_wakes_.notify_one();
    const bool in_time = consumer_wakes_.wait_for(lock, timeout, ready);
    waiting_ = false;
    if (!in_time) {
      *timed_out = true;
      return std::nullopt;
    }
  }
  if (stopping_ || next_step_ >= last_step_) return std::nullopt;
  const bool have = !coming_.empty() && coming_.front()->ready();
  if (error_ && !have) std::rethrow_exception(error_);
  Lease lease = std::move(coming_.front()->lease);
  coming_.pop_front();
  ++next_step_;
  const bool planner_waits_for_this = coming_.size() <= wake_at_;
  lock.unlock();
  if (planner_waits_for_this) planner_wakes_.notify_one();
  lease.deliver();
  return lease;
}

void Lookahead::run() {
  std::unique_lock lock(mutex_);
  try {
    while (!stopping_ && !error_) {
      lock.unlock();
      const Prospect prospect = in_.engine.prospect();  // may ask the kernel about many files
      lock.lock();
      prospect_ = prospect;
      if (stopping_ || error_) break;
      if (!advance(lock)) planner_wakes_.wait(lock);
    }
  } catch (const std::invalid_argument& misfit) {
    fail(lock, std::make_exception_ptr(std::invalid_argument(std::string(misfit.what()) + " (" +
                                                             step_text(making_step_) + ")")));
  } catch (...) {
    fail(lock, std::current_exception());
  }
}

void Lookahead::fail(std::unique_lock<std::mutex>& lock, std::exception_ptr error) {
  if (!lock.owns_lock()) lock.lock();
  if (!error_) error_ = std::move(error);
  consumer_wakes_.notify_all();
}

// Does one thing that can be done now, in the order of urgency; false: there is nothing to do until
// something changes.
bool Lookahead::advance(std::unique_lock<std::mutex>& lock) {
  wake_at_ = 0;
  if (finish(lock)) return true;
  if (gather(lock)) return true;
  if (read_window(lock)) return true;
  const bool window_landed =
      !reading_.empty() && reading_.landed == reading_.samples * in_.dataset.parts();
  if (window_landed && delivering_.next_step == delivering_.last_step) {
    std::swap(delivering_, reading_);
    reading_.last_step = reading_.first_step;
    return true;
  }
  if (!reading_.empty()) return false;
  if (direct_.exhausted() && next_plan_step_ < last_step_ && staging_pays()) {
    return plan_window(lock);
  }
  const bool between = delivering_.next_step == delivering_.last_step;
  return between && read_direct(lock);
}

// Nothing to do until the consumer has taken all but so many batches: it need not wake the planner
// before.
bool Lookahead::wait_until_left(std::size_t batches) {
  wake_at_ = std::max(wake_at_, batches);
  return false;
}

bool Lookahead::staging_pays() {
  if (slots_ == 0) return false;
  if (in_.dataset.parts() > 1) return true;
  if (prospect_.resident) return false;
  const double spacing = static_cast<double>(in_.dataset.data_bytes()) / slots_;
  return prospect_.gap_bytes > kLeastMergeShare * spacing;
}

bool Lookahead::plan_window(std::unique_lock<std::mutex>& lock) {
  if (coming_.size() > ahead_) return wait_until_left(ahead_);  // batches in memory make way first
  const std::uint64_t batch = schedule_.batch_size;
  const std::uint64_t spare = std::min(kSpareBatches, slots_ / batch / 4);
  const std::uint64_t most = std::max<std::uint64_t>(1, slots_ / batch - spare);
  const std::uint64_t steps = std::min({window_steps_, most, last_step_ - next_plan_step_});
  const std::uint64_t first = std::exchange(next_plan_step_, next_plan_step_ + steps);
  window_steps_ = std::min(most, window_steps_ * 2);
  lock.unlock();
  pool_->keep(ahead_ + 1);
  if (!staging_) {
    staging_ = std::make_unique<Staging>(in_.dataset, in_.order, schedule_, slots_);
  }
  staging_->plan(first, first + steps, &reading_);
  lock.lock();
  return true;
}

std::unique_ptr<Lookahead::Coming> Lookahead::make_batch(std::uint64_t step) {
  auto batch = std::make_unique<Coming>();
  const Schedule::Turn turn = schedule_.at(step);
  batch->lease = pool_->take();
  batch->step = step;
  batch->lease.step = turn.step;
  batch->lease.epoch = turn.epoch;
  batch->lease->samples.resize(schedule_.count(step));
  schedule_.fill(in_.order, step, batch->lease->samples);
  return batch;
}

// Makes the next batch of samples that have come as they were stored.
bool Lookahead::finish(std::unique_lock<std::mutex>& lock) {
  const auto next = std::find_if(coming_.begin(), coming_.end(),
                                 [](const auto& batch) { return batch->landed() && !batch->made; });
  if (next == coming_.end()) return false;
  Coming& batch = **next;  // stays where it is: the consumer takes only what is made
  lock.unlock();
  const std::byte* const raw = batch.lease->memory.data() + raw_offset_bytes_;
  staged_.clear();
  for (std::size_t i = 0; i < batch.lease->samples.size(); ++i) {
    staged_.push_back(raw + i * in_.dataset.sample_bytes());
  }
  making_step_ = batch.step;
  in_.dataset.deliver(batch.lease->samples, staged_, batch.lease->memory.data());
  lock.lock();
  batch.made = true;
  consumer_wakes_.notify_one();
  return true;
}

// Copies the next batch of a window that is all there.
bool Lookahead::gather(std::unique_lock<std::mutex>& lock) {
  if (delivering_.next_step == delivering_.last_step) return false;
  const std::size_t most = std::min(std::max<std::size_t>(ahead_, waiting_ ? 1 : 0), kReadyAhead);
  if (coming_.size() >= most) return wait_until_left(most > 0 ? most - 1 : 0);
  lock.unlock();
  std::unique_ptr<Coming> batch = make_batch(delivering_.next_step);
  making_step_ = batch->step;
  staging_->gather(&delivering_, batch->lease->samples, batch->lease->memory.data());
  lock.lock();
  coming_.push_back(std::move(batch));
  consumer_wakes_.notify_one();
  return true;
}

bool Lookahead::read_window(std::unique_lock<std::mutex>& lock) {
  if (reading_.empty()) return false;
  const std::uint32_t can = staging_->submittable(reading_);
  const std::uint32_t rest = reading_.samples - reading_.submitted;
  const auto most = static_cast<std::uint32_t>(piece_samples_);
  // Small pieces merge badly: wait for the slots of a whole one.
  if (can == 0 || can < std::min(rest, most)) return false;
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  piece->group = nullptr;
  piece->first_step = reading_.first_step;
  piece->last_step = reading_.last_step;
  lock.unlock();
  staging_->take_piece(std::min(can, most), &reading_, &piece->samples, &piece->targets,
                       &piece->storage);
  submit(*piece, lock);
  return true;
}

// Reads the next group of batches, or the next piece of it, straight into their buffers.
bool Lookahead::read_direct(std::unique_lock<std::mutex>& lock) {
  if (direct_.exhausted() && !plan_group(lock)) return false;
  if (direct_.exhausted()) return true;  // rows of no bytes
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  piece->group = coming_.back()->group;
  piece->first_step = group_step_;
  piece->last_step = next_plan_step_;
  lock.unlock();
  direct_.take_piece(piece_samples_, &piece->samples, &piece->targets, &piece->storage);
  submit(*piece, lock);
  return true;
}

// Batches whose reads go together. Where the data is in memory and they are sorted, as many as
// there is room for; else as many as make a set of reads that is worth its hand-over.
std::uint64_t Lookahead::most_together() const {
  if (prospect_.held) return 1;
  const bool in_order = in_.order.sequential();
  if (prospect_.resident && !in_order) return std::max<std::uint64_t>(1, hot_ahead_ * 2 / 3);
  const std::uint64_t batch_bytes =
      std::max<std::uint64_t>(1, schedule_.batch_size * in_.dataset.sample_bytes());
  const std::uint64_t worth = in_order ? kSetBytes / batch_bytes : kSetReads / schedule_.batch_size;
  const std::uint64_t most = prospect_.resident ? hot_ahead_ / 3 : ahead_ / 4;
  return std::clamp<std::uint64_t>(worth, 1, std::max<std::uint64_t>(1, most));
}

bool Lookahead::plan_group(std::unique_lock<std::mutex>& lock) {
  const bool hot = prospect_.resident;
  const bool together = hot && !prospect_.held;
  const std::size_t most = std::max<std::size_t>(together ? hot_ahead_ : ahead_, waiting_ ? 1 : 0);
  const std::uint64_t wanted = std::min(group_steps_, most_together());
  // One buffer changes hands: a consumer lets go of a batch only when it has got the next.
  const std::size_t free = most > 1 ? most - 1 : most;
  const std::uint64_t room = free - std::min(free, coming_.size());
  if (next_plan_step_ == last_step_) return false;
  // The first batch hurries: until it has come, the processor is for its reads alone.
  const bool first_comes = group_step_ == first_step_ && !coming_.empty();
  if (wanted > 1 && first_comes && !coming_.front()->ready()) return false;
  if (room < (coming_.empty() ? 1 : wanted)) {
    return wait_until_left(free > wanted ? free - wanted : 0);
  }
  // Within one epoch, where only the last batch may be short.
  const std::uint64_t steps = std::min({wanted, room, schedule_.at(next_plan_step_).left});
  group_steps_ = std::min(most_together(), group_steps_ * 2);
  group_step_ = std::exchange(next_plan_step_, next_plan_step_ + steps);
  const bool sort = !prospect_.held;
  lock.unlock();
  if (hot) staging_.reset();
  pool_->keep(most + 1);
  const auto group = std::make_shared<Group>();
  std::vector<std::unique_ptr<Coming>> batches;
  std::vector<Buffer*> buffers;
  for (std::uint64_t step = group_step_; step < group_step_ + steps; ++step) {
    batches.push_back(make_batch(step));
    batches.back()->group = group;
    batches.back()->made = in_.dataset.as_read();
    buffers.push_back(&*batches.back()->lease);
    if (in_.dataset.sample_bytes() > 0) {
      group->left += buffers.back()->samples.size() * in_.dataset.parts();
    }
  }
  direct_.plan(buffers, raw_offset_bytes_, sort);
  lock.lock();
  for (auto& batch : batches) coming_.push_back(std::move(batch));
  if (group->left == 0) consumer_wakes_.notify_one();
  return true;
}

Lookahead::Piece* Lookahead::free_piece() {
  const auto free = std::find_if(pieces_.begin(), pieces_.end(),
                                 [](const auto& piece) { return !piece->flying; });
  return free == pieces_.end() ? nullptr : free->get();
}

void Lookahead::submit(Piece& piece, std::unique_lock<std::mutex>& lock) {
  piece.reads = piece.storage;
  lock.lock();
  piece.flying = true;
  lock.unlock();
  in_.engine.submit(piece);
  lock.lock();
}

// On a thread of the engine, or inside submit.
void Lookahead::landed(Piece& piece, const Outcome& outcome) noexcept {
  const std::lock_guard lock(mutex_);
  if (!outcome.ok()) {
    record(piece, outcome);
  } else if (piece.group == nullptr) {
    reading_.landed += piece.samples.size();
  } else {
    piece.group->left -= piece.samples.size();
    if (piece.group->left == 0) consumer_wakes_.notify_one();
  }
  piece.flying = false;
  planner_wakes_.notify_one();
}

void Lookahead::record(const Piece& piece, const Outcome& outcome) {
  if (error_ || outcome.cancelled) return;
  const Read& read = piece.storage[outcome.read];
  try {
    throw_outcome(outcome, read, in_.dataset.path(read.from.shard), step_text(piece, read.into));
  } catch (...) {
    error_ = std::current_exception();
  }
  consumer_wakes_.notify_all();
}

// "step 17" of the sample that the failed read was for. Samples were sorted, so the steps are
// searched.
std::string Lookahead::step_text(const Piece& piece, const std::byte* into) const {
  std::uint64_t step = piece.first_step;
  std::size_t which = 0;
  while (
      which + 1 < piece.targets.size() &&
      !(into >= piece.targets[which] && into < piece.targets[which] + in_.dataset.sample_bytes())) {
    ++which;
  }
  std::vector<std::uint64_t> samples;
  for (; step + 1 < piece.last_step; ++step) {
    samples.resize(schedule_.count(step));
    schedule_.fill(in_.order, step, samples);
    if (std::find(samples.begin(), samples.end(), piece.samples[which]) != samples.end()) break;
  }
  return step_text(step);
}

std::string Lookahead::step_text(std::uint64_t step) const {
  const Schedule::Turn turn = schedule_.at(step);
  return "epoch " + std::to_string(turn.epoch) + ", step " + std::to_string(turn.step);
}

}  // namespace lowtide
