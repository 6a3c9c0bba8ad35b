// The sets of reads of a Lookahead: submitted, landed, failed.
#include <algorithm>
#include <exception>
#include <string>

#include "engine/outcome.h"
#include "loader/lookahead_parts.h"

namespace lowtide {

bool Lookahead::reads_flying() const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [](const auto& piece) { return piece->flying; });
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
  lock.unlock();  // the engine may call landed(), which takes the lock, before submit() returns
  in_.engine.submit(piece);
  lock.lock();
}

// Runs on a thread of the engine, or inside submit().
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

// Keeps the first error only. A cancelled set is none: the planner cancelled it to start over.
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

// The step of the sample that the failed read was for. Sorting has mixed the samples of several
// steps, so this computes the steps again and searches them.
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
    schedule_.fill(in_.order, step, in_.dataset.size(), samples);
    if (std::find(samples.begin(), samples.end(), piece.samples[which]) != samples.end()) break;
  }
  return step_text(step);
}

std::string Lookahead::step_text(std::uint64_t step) const {
  const Schedule::Turn turn = schedule_.at(step);
  return "epoch " + std::to_string(turn.epoch) + ", step " + std::to_string(turn.step);
}

}  // namespace lowtide
