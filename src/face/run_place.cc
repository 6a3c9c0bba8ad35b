// Where a Run is: saved, restored, moved, skipped over.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "face/run.h"
#include "lowtide/options.h"
#include "order/mixture.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostSkips = 16;  // keeps a state under 1 KB
// The most windows of a mixture before a place that a caller may go to. It leaves as many again, so
// that a run never reaches the last position of a mixture.
constexpr std::uint64_t kMostBase = Mixture::kMostPositions / 2;

std::string text(std::uint64_t value) {
  return std::to_string(value);
}

void compare(const char* what, const std::string& saved, const std::string& here, bool loader) {
  if (saved == here) return;
  throw std::invalid_argument(std::string("state: ") + what + " differs: the state has " + saved +
                              (loader ? ", this loader has " : ", these batches have ") + here);
}

// How many epochs are left of a schedule from `epoch` on.
std::uint64_t epochs_from(const Schedule& schedule, std::uint64_t epoch) {
  if (schedule.epochs == Schedule::kForever) return Schedule::kForever;
  return schedule.epoch + schedule.epochs - std::min(epoch, schedule.epoch + schedule.epochs);
}

}  // namespace

Schedule::Turn Run::now() const {
  if (in_.one_epoch && ended()) return schedule_.in_epoch(schedule_.epoch, turns_);
  return schedule_.at(turn_);
}

void Run::seek(std::uint64_t step, std::uint64_t epoch) {
  const std::uint64_t steps = origin_.steps_in_epoch();
  const bool forever = origin_.epochs == Schedule::kForever;
  const std::uint64_t end = forever ? Schedule::kForever : origin_.epoch + origin_.epochs;
  if (step > steps || (!in_.one_epoch && !forever && epoch >= end + (step == 0 ? 1 : 0))) {
    throw std::out_of_range(
        "seek: step " + text(step) + " of epoch " + text(epoch) + " is beyond the " + text(steps) +
        " steps of an epoch" +
        (forever || in_.one_epoch ? "" : " and the " + text(end) + " epochs of this loader"));
  }
  check_epoch("seek", epoch);
  State place = this->place();
  place.base = base_of(epoch).value_or(0);
  place.epoch = epoch;
  place.step = step;
  place.position = std::min(step * origin_.positions_per_step(), origin_.size);
  go_to(place);
}

void Run::check_epoch(const char* what, std::uint64_t epoch) const {
  if (!origin_.continuous || epoch <= kMostBase / origin_.size) return;
  throw std::out_of_range(std::string(what) + ": a mixture of this size has no epoch " +
                          text(epoch) + "; its last epoch is " + text(kMostBase / origin_.size));
}

void Run::skip(std::uint64_t first, std::uint64_t last, std::uint64_t epoch) {
  const Schedule::Turn next = now();
  if (epoch < next.epoch || (epoch == next.epoch && first < next.step)) {
    throw std::invalid_argument("skip: step " + text(first) + " of epoch " + text(epoch) +
                                " has passed; the next is step " + text(next.step) + " of epoch " +
                                text(next.epoch));
  }
  if (epochs_from(origin_, epoch) == 0) {
    throw std::invalid_argument("skip: epoch " + text(epoch) + " is beyond the " +
                                text(origin_.epoch + origin_.epochs) + " epochs of this loader");
  }
  const std::uint64_t steps = schedule_.in_epoch(epoch, 0).left;
  const std::uint64_t end = schedule_.in_epoch(epoch, steps).step;
  if (first >= last || last > end) {
    throw std::invalid_argument("skip: " + text(first) + " to " + text(last) +
                                " is not a range within the " + text(end) + " steps of the epoch");
  }
  // Where the step with this number starts. It takes a search, because no formula holds for an
  // epoch that was entered under other sizes or that has skips already.
  const auto start_of = [&](std::uint64_t step) {
    std::uint64_t low = 0, high = steps;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (schedule_.in_epoch(epoch, middle).step < step) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return schedule_.in_epoch(epoch, low).position;
  };
  const std::uint64_t from = start_of(first), to = start_of(last);
  if (from == to) return;  // skipped already
  State place = this->place();
  place.skipped.push_back({epoch, from, to});
  go_to(place);
}

std::optional<std::uint64_t> Run::base_of(std::uint64_t epoch) const {
  if (!origin_.continuous) return 0;
  if (epoch >= schedule_.epoch) return schedule_.in_epoch(epoch, 0).base;
  // Computed as if the current sizes had been in force.
  const std::uint64_t each =
      origin_.drop_last ? origin_.steps_in_epoch() * origin_.positions_per_step() : origin_.size;
  if (schedule_.epoch - epoch > schedule_.base / each) return std::nullopt;
  return schedule_.base - (schedule_.epoch - epoch) * each;
}

std::uint64_t Run::fingerprint() const {
  if (!fingerprint_) fingerprint_ = in_.fingerprint();
  return *fingerprint_;
}

State Run::place() const {
  const Schedule::Turn next = now();
  State place = in_.like;
  place.epoch = next.epoch;
  place.position = next.position;
  place.step = next.step;
  place.base = origin_.continuous ? next.base : 0;
  for (const Skip& skip : schedule_.skips) {
    place.skipped.push_back({skip.epoch, skip.first, skip.last});
  }
  return place;
}

State Run::state() const {
  State state = place();
  state.fingerprint = fingerprint();
  return state;
}

void Run::restore(const State& state) {
  check(state);
  go_to(state);
}

// Throws std::invalid_argument unless the state was saved by such a run over such data.
void Run::check(const State& state) const {
  const State& like = in_.like;
  const bool loader = !in_.one_epoch;
  compare("format", text(state.format), text(like.format), loader);
  if ((state.block_size == 0) != (like.block_size == 0)) {
    throw std::invalid_argument(
        state.block_size == 0
            ? "state: it was saved by a reader of rows, but this loader reads windows of tokens"
            : "state: it was saved by a loader of windows of tokens, but this one reads rows");
  }
  compare("block_size", text(state.block_size), text(like.block_size), loader);
  compare("order", state.order, like.order, loader);
  compare("seed", text(state.seed), text(like.seed), loader);
  if (state.fingerprint && *state.fingerprint != fingerprint()) {
    throw std::invalid_argument(
        "state: the data differs: the state was saved with different files, contents, rows or "
        "weights");
  }
}

// Throws std::invalid_argument for a state that does not name a place in this run.
void Run::go_to(const State& state) {
  // A random epoch is stretched to at least one step, so it may have been longer under other sizes.
  const bool random = in_.like.order == order_word(OrderKind::random);
  if (state.position > origin_.size && !random) {
    throw std::invalid_argument("state: position " + text(state.position) + " is beyond the " +
                                text(origin_.size) + " positions of an epoch");
  }
  if (origin_.continuous && state.base > kMostBase) {
    throw std::invalid_argument("state: " + text(state.base) +
                                " windows before this epoch exceed the " + text(kMostBase) +
                                " that a mixture can have");
  }
  Schedule schedule = origin_;
  schedule.epoch = state.epoch;
  schedule.position = std::min(state.position, origin_.size);
  schedule.step = state.step;
  schedule.base = origin_.continuous ? state.base : 0;
  if (!in_.one_epoch) schedule.epochs = epochs_from(origin_, state.epoch);
  std::vector<Skip> skips;
  for (const State::Skipped& skip : state.skipped) {
    if (skip.first >= skip.last || (skip.last > origin_.size && !random)) {
      throw std::invalid_argument("state: the skipped range " + text(skip.first) + " to " +
                                  text(skip.last) + " is not within an epoch");
    }
    const std::uint64_t last = std::min(skip.last, origin_.size);
    if (skip.first < last) skips.push_back({skip.epoch, skip.first, last});
  }
  schedule.skips = Skips(std::move(skips));
  schedule.skips.forget(kMostSkips, state.epoch);
  if (schedule.skips.size() > kMostSkips) {
    throw std::invalid_argument("skip: more than " + text(kMostSkips) +
                                " ranges in the current and later epochs; join some, because "
                                "adjacent ranges count as one");
  }
  restart(std::move(schedule));
}

}  // namespace lowtide
