#include "loader/loader.h"

#include <algorithm>
#include <bit>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine/outcome.h"
#include "loader/sort.h"

namespace lowtide {
namespace {

constexpr std::size_t kReadyAhead = 3;      // batches gathered before they are asked for
constexpr std::uint64_t kSpareBatches = 4;  // slots beyond a window: they carry over its end
constexpr unsigned kPlaceBits = std::bit_width(kPieceSamples - 1);
constexpr double kLeastMergeShare = 0.1;  // of gap to spacing: below, looking far brings nothing

}  // namespace

// A batch on its way to the consumer.
struct Loader::Coming {
  std::uint64_t step = 0;
  Lease lease;
  std::uint64_t left = 0;       // sample parts that have not come
  std::uint64_t part = 0;       // to be submitted next
  std::uint64_t submitted = 0;  // samples of that part
};

// One set of reads on its way. It belongs to a batch, or to the window that is being read.
struct Loader::Piece final : ReadSet {
  Loader* loader = nullptr;
  Coming* batch = nullptr;
  std::uint64_t first_step = 0, last_step = 0;  // to which its samples belong
  bool flying = false;
  std::vector<std::uint64_t> samples;
  std::vector<std::byte*> targets;
  std::vector<Read> storage;

  void done(const Outcome& outcome) noexcept override { loader->landed(*this, outcome); }
};

Loader::Loader(const LoaderInputs& inputs, const Schedule& schedule, std::uint64_t first_step)
    : in_(inputs),
      schedule_(schedule),
      last_step_(schedule.steps()),
      next_plan_step_(first_step),
      next_step_(first_step) {
  claims_ = in_.budget.claim_all(least_room(in_.dataset, schedule_));
  const Room room = claim_room();
  ahead_ = room.ahead;
  hot_ahead_ = room.hot_ahead;
  piece_samples_ =
      std::min<std::uint64_t>(room.piece_samples, Engine::kMaxReads / in_.dataset.reads_per_part());
  pool_ = std::make_shared<Pool>(room.buffer_bytes, std::min(schedule_.batch_size, schedule_.size),
                                 ahead_ + 1);
  if (room.slots > 0) {
    staging_ = std::make_unique<Staging>(in_.dataset, in_.order, schedule_,
                                         static_cast<std::uint32_t>(room.slots));
  }
  if (last_step_ - std::min(first_step, last_step_) > 1) in_.engine.expect_all();
  for (std::size_t i = 0; i < std::max<std::size_t>(ahead_, kStagedPieces); ++i) {
    pieces_.push_back(std::make_unique<Piece>());
    pieces_.back()->loader = this;
  }
  planner_ = std::thread([this] { run(); });
}

Room Loader::claim_room() {
  for (;;) {
    const Room room = plan_room(in_.dataset, in_.order, schedule_, in_.budget.free_bytes());
    if (room.elastic_bytes == 0) return room;
    try {
      claims_.push_back(in_.budget.claim(room.elastic_bytes, "batches ahead"));
      return room;
    } catch (const std::invalid_argument&) {
      // Another loader was faster: what it left is measured again.
    }
  }
}

Loader::~Loader() {
  cancel();
  planner_.join();
  std::unique_lock lock(mutex_);
  for (const auto& piece : pieces_) piece->cancel();
  planner_wakes_.wait(lock, [&] {
    return std::none_of(pieces_.begin(), pieces_.end(),
                        [](const auto& piece) { return piece->flying; });
  });
}

void Loader::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  planner_wakes_.notify_all();
  consumer_wakes_.notify_all();
}

std::optional<Lease> Loader::next(std::chrono::milliseconds timeout, bool* timed_out) {
  std::unique_lock lock(mutex_);
  *timed_out = false;
  const auto ready = [&] {
    return stopping_ || error_ || next_step_ >= last_step_ ||
           (!coming_.empty() && coming_.front()->left == 0);
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
  if (error_) std::rethrow_exception(error_);
  if (stopping_ || next_step_ >= last_step_) return std::nullopt;
  Lease lease = std::move(coming_.front()->lease);
  coming_.pop_front();
  ++next_step_;
  planner_wakes_.notify_one();
  lock.unlock();
  lease.deliver();
  return lease;
}

void Loader::run() {
  std::unique_lock lock(mutex_);
  try {
    while (!stopping_ && !error_) {
      if (advance(lock)) continue;
      if (stopping_ || error_) break;
      planner_wakes_.wait(lock);
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (!error_) error_ = std::current_exception();
  }
  consumer_wakes_.notify_all();
}

// Does one thing that can be done now, in the order of urgency; false: there is nothing to do until
// something changes.
bool Loader::advance(std::unique_lock<std::mutex>& lock) {
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
  const bool between = delivering_.next_step == delivering_.last_step;
  const bool batch_under_way = !coming_.empty() && coming_.back()->part < in_.dataset.parts();
  if (!batch_under_way && next_plan_step_ < last_step_ && staging_pays()) {
    plan_window(lock);
    return true;
  }
  return between && read_batch(lock);
}

bool Loader::has_room() {
  const std::size_t most = in_.engine.prospect().resident ? hot_ahead_ : ahead_;
  return coming_.size() < std::max<std::size_t>(most, waiting_ ? 1 : 0);
}

bool Loader::staging_pays() {
  if (!staging_) return false;
  if (in_.dataset.parts() > 1) return true;
  const Prospect prospect = in_.engine.prospect();
  if (prospect.resident) return false;
  const double spacing = static_cast<double>(in_.dataset.data_bytes()) / staging_->slots();
  return prospect.gap_bytes > kLeastMergeShare * spacing;
}

void Loader::plan_window(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t batch = schedule_.batch_size;
  const std::uint64_t spare = std::min(kSpareBatches, staging_->slots() / batch / 4);
  const std::uint64_t most = std::max<std::uint64_t>(1, staging_->slots() / batch - spare);
  const std::uint64_t steps = std::min({window_steps_, most, last_step_ - next_plan_step_});
  const std::uint64_t first = std::exchange(next_plan_step_, next_plan_step_ + steps);
  window_steps_ = std::min(most, window_steps_ * 2);
  lock.unlock();
  staging_->plan(first, first + steps, &reading_);
  lock.lock();
}

// Copies the next batch of a window that is all there.
bool Loader::gather(std::unique_lock<std::mutex>& lock) {
  if (delivering_.next_step == delivering_.last_step) return false;
  if (coming_.size() >= std::min(std::max<std::size_t>(ahead_, waiting_ ? 1 : 0), kReadyAhead))
    return false;
  const std::uint64_t step = delivering_.next_step;
  const std::uint64_t count = schedule_.count(step);
  lock.unlock();
  auto batch = std::make_unique<Coming>();
  batch->step = step;
  batch->part = in_.dataset.parts();
  batch->lease = pool_->take();
  batch->lease.step = step;
  batch->lease.epoch = schedule_.epoch;
  batch->lease->samples.resize(count);
  in_.order.fill(schedule_.epoch, schedule_.first(step), batch->lease->samples);
  staging_->gather(&delivering_, static_cast<std::uint32_t>(count), batch->lease->memory.data());
  lock.lock();
  coming_.push_back(std::move(batch));
  consumer_wakes_.notify_one();
  return true;
}

bool Loader::read_window(std::unique_lock<std::mutex>& lock) {
  if (reading_.empty()) return false;
  const std::uint32_t can = staging_->submittable(reading_);
  const std::uint32_t rest = reading_.samples - reading_.submitted;
  const auto most = static_cast<std::uint32_t>(piece_samples_);
  // Small pieces merge badly: wait for the slots of a whole one.
  if (can == 0 || can < std::min(rest, most)) return false;
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  piece->batch = nullptr;
  piece->first_step = reading_.first_step;
  piece->last_step = reading_.last_step;
  lock.unlock();
  staging_->take_piece(std::min(can, most), &reading_, &piece->samples, &piece->targets,
                       &piece->storage);
  submit(*piece, lock);
  return true;
}

// Reads the next batch, or the next piece of it, straight into its buffer.
bool Loader::read_batch(std::unique_lock<std::mutex>& lock) {
  Coming* batch = coming_.empty() ? nullptr : coming_.back().get();
  if (batch == nullptr || batch->part == in_.dataset.parts()) {
    if (next_plan_step_ == last_step_ || !has_room()) return false;
    const std::uint64_t step = next_plan_step_++;
    lock.unlock();
    auto fresh = std::make_unique<Coming>();
    fresh->step = step;
    fresh->lease = pool_->take();
    fresh->lease.step = step;
    fresh->lease.epoch = schedule_.epoch;
    fresh->lease->samples.resize(schedule_.count(step));
    in_.order.fill(schedule_.epoch, schedule_.first(step), fresh->lease->samples);
    const bool empty = in_.dataset.sample_bytes() == 0;
    fresh->left = empty ? 0 : fresh->lease->samples.size() * in_.dataset.parts();
    if (empty) fresh->part = in_.dataset.parts();
    batch = fresh.get();
    lock.lock();
    coming_.push_back(std::move(fresh));
    if (empty) {
      consumer_wakes_.notify_one();
      return true;
    }
  }
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  const std::vector<std::uint64_t>& samples = batch->lease->samples;
  const std::uint64_t count =
      std::min<std::uint64_t>(piece_samples_, samples.size() - batch->submitted);
  const std::uint64_t first = batch->submitted;
  piece->batch = batch;
  piece->first_step = batch->step;
  piece->last_step = batch->step + 1;
  const std::uint64_t part = batch->part;
  batch->submitted += count;
  if (batch->submitted == samples.size()) {
    batch->submitted = 0;
    ++batch->part;
  }
  std::byte* rows = batch->lease->memory.data();
  lock.unlock();
  const std::span<const std::uint64_t> here(samples.data() + first, count);
  aim(here, rows + first * in_.dataset.sample_bytes(), piece);
  piece->storage.clear();
  in_.dataset.locate(part, piece->samples, piece->targets, piece->storage);
  submit(*piece, lock);
  return true;
}

// The samples in the order in which they lie, each with its place among the rows: the kernel finds
// pages faster that way, and the disk likes it too.
void Loader::aim(std::span<const std::uint64_t> samples, std::byte* rows, Piece* piece) {
  const std::uint64_t row_bytes = in_.dataset.sample_bytes();
  const auto sample_bits = static_cast<unsigned>(std::bit_width(in_.dataset.size()));
  const bool sorts = !in_.order.sequential() && sample_bits + kPlaceBits <= 64;
  piece->samples.assign(samples.begin(), samples.end());
  if (sorts) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      piece->samples[i] = samples[i] << kPlaceBits | i;
    radix_sort(kPlaceBits, sample_bits, &piece->samples, &sort_scratch_);
  }
  piece->targets.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint64_t place = sorts ? piece->samples[i] & (kPieceSamples - 1) : i;
    if (sorts) piece->samples[i] >>= kPlaceBits;
    piece->targets.push_back(rows + place * row_bytes);
  }
}

Loader::Piece* Loader::free_piece() {
  const auto free = std::find_if(pieces_.begin(), pieces_.end(),
                                 [](const auto& piece) { return !piece->flying; });
  if (free == pieces_.end()) return nullptr;
  (*free)->flying = true;
  return free->get();
}

void Loader::submit(Piece& piece, std::unique_lock<std::mutex>& lock) {
  piece.reads = piece.storage;
  in_.engine.submit(piece);
  lock.lock();
}

// On a thread of the engine, or inside submit.
void Loader::landed(Piece& piece, const Outcome& outcome) noexcept {
  const std::lock_guard lock(mutex_);
  if (!outcome.ok()) {
    record(piece, outcome);
  } else if (piece.batch == nullptr) {
    reading_.landed += piece.samples.size();
  } else {
    piece.batch->left -= piece.samples.size();
    if (piece.batch->left == 0 && piece.batch == coming_.front().get())
      consumer_wakes_.notify_one();
  }
  piece.flying = false;
  planner_wakes_.notify_one();
}

void Loader::record(const Piece& piece, const Outcome& outcome) {
  if (error_ || outcome.cancelled) return;
  const Read& read = piece.storage[outcome.read];
  try {
    throw_outcome(outcome, read, in_.dataset.path(read.from.shard), step_text(piece, read.into));
  } catch (...) {
    error_ = std::current_exception();
  }
  consumer_wakes_.notify_all();
}

// "step 17" of the sample that the failed read was for. A window's samples were sorted, so its
// steps are searched.
std::string Loader::step_text(const Piece& piece, const std::byte* into) const {
  std::uint64_t step = piece.first_step;
  if (piece.batch == nullptr) {
    std::size_t which = 0;
    while (which + 1 < piece.targets.size() &&
           !(into >= piece.targets[which] &&
             into < piece.targets[which] + in_.dataset.sample_bytes())) {
      ++which;
    }
    std::vector<std::uint64_t> samples;
    for (; step + 1 < piece.last_step; ++step) {
      samples.resize(schedule_.count(step));
      in_.order.fill(schedule_.epoch, schedule_.first(step), samples);
      if (std::find(samples.begin(), samples.end(), piece.samples[which]) != samples.end()) break;
    }
  }
  return "epoch " + std::to_string(schedule_.epoch) + ", step " + std::to_string(step);
}

}  // namespace lowtide
