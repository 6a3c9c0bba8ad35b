#include "loader/schedule.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/checked.h"

namespace lowtide {

void check_shares(const Schedule& schedule) {
  if (schedule.batch_size == 0) throw std::invalid_argument("batch_size must be at least 1, not 0");
  if (schedule.world_size == 0) throw std::invalid_argument("world_size must be at least 1, not 0");
  if (schedule.rank >= schedule.world_size) {
    throw std::invalid_argument("rank must be below world_size (" +
                                std::to_string(schedule.world_size) + "), not " +
                                std::to_string(schedule.rank));
  }
}

namespace {

void check_samples(std::span<const std::uint64_t> samples, std::uint64_t position,
                   std::uint64_t limit) {
  // One pass without an early exit, which compilers vectorise. The fault is searched for only if
  // there is one.
  std::uint64_t largest = 0;
  for (const std::uint64_t sample : samples) largest = std::max(largest, sample);
  if (samples.empty() || largest < limit) return;
  const auto wrong = std::ranges::find_if(samples, [&](std::uint64_t s) { return s >= limit; });
  throw std::out_of_range(
      "order: entry " +
      std::to_string(position + static_cast<std::uint64_t>(wrong - samples.begin())) + " is now " +
      std::to_string(static_cast<std::int64_t>(*wrong)) + ", but there are " +
      std::to_string(limit) +
      " rows: the list was changed while its batches were being read; pass a copy of it");
}

}  // namespace

struct Schedule::Place {
  std::uint64_t number = 0;     // of the epoch, from 0
  std::uint64_t base = 0;       // positions of the order before this epoch, if continuous
  std::uint64_t start = 0;      // the first position that is dealt out
  std::uint64_t available = 0;  // how many positions are dealt out, without skips
  std::uint64_t steps = 0;      // of this rank
  std::uint64_t step = 0;       // the current one
};

std::uint64_t Schedule::steps_of(std::uint64_t positions) const {
  const std::uint64_t full = positions / batch_size;
  if (drop_last) return full / world_size;
  const std::uint64_t batches = full + (positions % batch_size != 0 ? 1 : 0);
  return batches / world_size + (rank < batches % world_size ? 1 : 0);
}

std::uint64_t Schedule::positions_per_step() const {
  std::uint64_t positions = 0;
  return checked_mul(world_size, batch_size, &positions) ? positions : kForever;
}

Schedule::Place Schedule::epoch_at(std::uint64_t number, std::uint64_t base_of) const {
  const std::uint64_t start = number == 0 ? position : 0;
  const std::uint64_t available = available_from(epoch + number, start);
  return {.number = number,
          .base = base_of,
          .start = start,
          .available = available,
          .steps = steps_of(available)};
}

// Positions of an epoch from `start` on that are not skipped.
std::uint64_t Schedule::available_from(std::uint64_t of_epoch, std::uint64_t start) const {
  const std::uint64_t first = std::min(start, size);
  return size - first - skips.count(of_epoch, first, size);
}

// The number of the first epoch from `from` on that has skips; kForever if there is none.
std::uint64_t Schedule::next_skipping_epoch(std::uint64_t from) const {
  const std::uint64_t found = skips.next_epoch(epoch + from);
  return found == Skips::kNone ? kForever : found - epoch;
}

// In a continuous order the next epoch begins at the first position that this one does not deal
// out, so that nothing is left out.
Schedule::Place Schedule::epoch_after(const Place& place) const {
  const std::uint64_t dealt = drop_last ? place.steps * positions_per_step() : place.available;
  const std::uint64_t before = skipped_before(place, dealt);
  return epoch_at(place.number + 1, place.base + place.start + dealt + before);
}

// This many epochs further, all of which are like `place`: nothing is skipped from them.
Schedule::Place Schedule::epochs_on(const Place& place, std::uint64_t number) const {
  const std::uint64_t span = drop_last ? place.steps * positions_per_step() : size;
  return epoch_at(place.number + number, place.base + number * span);
}

// All epochs without skips are alike, so one division passes over any number of them. The cost is
// proportional to the number of skips, not of epochs.
Schedule::Place Schedule::find(std::uint64_t turn) const {
  const std::uint64_t each = steps_of(size);
  Place place = epoch_at(0, base);
  while (turn >= place.steps) {
    turn -= place.steps;
    place = epoch_after(place);
    if (each == 0) break;  // no epoch has a step, so the search would never end
    const std::uint64_t alike = next_skipping_epoch(place.number) - place.number;
    const std::uint64_t passed = std::min(turn / each, alike);
    if (passed == 0) continue;
    place = epochs_on(place, passed);
    turn -= passed * each;
  }
  place.step = turn;
  return place;
}

// How many positions are skipped before the available-th position that is not, from the start of
// the place on.
std::uint64_t Schedule::skipped_before(const Place& place, std::uint64_t available) const {
  return skips.before(epoch + place.number, place.start, available);
}

std::uint64_t Schedule::turns() const {
  const std::uint64_t each = steps_of(size);
  if (epochs == 0) return 0;
  std::uint64_t all = epoch_at(0, 0).steps;
  if (epochs == kForever) return each == 0 ? all : kForever;
  std::uint64_t number = 1;
  while (number < epochs) {
    const std::uint64_t special = std::min(next_skipping_epoch(number), epochs);
    const std::uint64_t plain = special - number;
    if (each != 0 && plain > (kForever - all) / each) return kForever;
    all += plain * each;
    number = special;
    if (number < epochs) all += epoch_at(number++, 0).steps;
  }
  return all;
}

// Skipped steps keep their numbers, so that the steps after them are numbered as in a run without
// skips.
Schedule::Turn Schedule::turn_of(const Place& place) const {
  const std::uint64_t available = std::min(place.step * positions_per_step(), place.available);
  const std::uint64_t skipped = skipped_before(place, available);
  return {.epoch = epoch + place.number,
          .step = (place.number == 0 ? step : 0) + place.step + skipped / positions_per_step(),
          .position = place.start + available + skipped,
          .base = place.base,
          .left = place.steps - place.step};
}

Schedule::Turn Schedule::at(std::uint64_t turn) const {
  return turn_of(find(turn));
}

Schedule::Turn Schedule::in_epoch(std::uint64_t of_epoch, std::uint64_t number) const {
  Place place = epoch_at(0, base);
  while (place.number < of_epoch - epoch) {
    place = epoch_after(place);
    const std::uint64_t alike =
        std::min(next_skipping_epoch(place.number), of_epoch - epoch) - place.number;
    if (alike > 0) place = epochs_on(place, alike);
  }
  place.step = number;
  return turn_of(place);
}

std::uint64_t Schedule::count(std::uint64_t turn) const {
  const Place place = find(turn);
  return std::min(batch_size, place.available - (place.step * world_size + rank) * batch_size);
}

void Schedule::fill(const Order& order, std::uint64_t turn, std::uint64_t limit,
                    std::span<std::uint64_t> samples) const {
  const Place place = find(turn);
  const std::uint64_t of_epoch = epoch + place.number;
  std::uint64_t available = (place.step * world_size + rank) * batch_size;
  while (!samples.empty()) {
    const std::uint64_t from = place.start + available + skipped_before(place, available);
    const std::uint64_t run =
        std::min<std::uint64_t>(samples.size(), skips.next(of_epoch, from) - from);
    order.fill(continuous ? 0 : of_epoch, continuous ? place.base + from : from,
               samples.first(run));
    check_samples(samples.first(run), from, limit);
    available += run;
    samples = samples.subspan(run);
  }
}

std::optional<Schedule::Owner> Schedule::owner(std::uint64_t of_epoch,
                                               std::uint64_t at_position) const {
  if (at_position >= size) return std::nullopt;
  // Positions before the schedule are answered as if these sizes had been in force from the start
  // of their epoch.
  const bool behind = of_epoch < epoch || (of_epoch == epoch && at_position < position);
  const std::uint64_t start = behind || of_epoch != epoch ? 0 : position;
  const Place place{
      .number = of_epoch - epoch, .start = start, .available = available_from(of_epoch, start)};
  if (skips.count(of_epoch, at_position, at_position + 1) > 0) return std::nullopt;
  const std::uint64_t before =
      at_position - place.start - skips.count(of_epoch, place.start, at_position);
  const std::uint64_t each = positions_per_step();
  const std::uint64_t number = before / each;
  if (drop_last && number >= place.available / each) return std::nullopt;
  // A step is numbered by where it starts, so a skip inside it counts for the next one.
  const std::uint64_t skipped = skipped_before(place, number * each);
  return Owner{.step = (behind || of_epoch != epoch ? 0 : step) + number + skipped / each,
               .rank = before / batch_size % world_size,
               .row = before % batch_size};
}

}  // namespace lowtide
