#include "loader/schedule.h"

#include <algorithm>

#include "core/checked.h"

namespace lowtide {

struct Schedule::Place {
  std::uint64_t number = 0;     // of the epoch, from 0
  std::uint64_t base = 0;       // positions of the order before this epoch, if continuous
  std::uint64_t start = 0;      // the first position of it that is dealt out
  std::uint64_t available = 0;  // how many are, skips taken off
  std::uint64_t steps = 0;      // of this rank
  std::uint64_t step = 0;       // which one
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
  Place place{.number = number, .base = base_of, .start = number == 0 ? position : 0};
  place.available = size - std::min(place.start, size);
  for (const Skip& skip : skips) {
    if (skip.epoch != epoch + number) continue;
    const std::uint64_t last = std::min(skip.last, size);
    const std::uint64_t first = std::min(std::max(skip.first, place.start), last);
    place.available -= last - first;
  }
  place.steps = steps_of(place.available);
  return place;
}

// The number of the first epoch from `from` on that has skips; kForever where none has.
std::uint64_t Schedule::next_skipping_epoch(std::uint64_t from) const {
  for (const Skip& skip : skips) {
    if (skip.epoch >= epoch + from) return skip.epoch - epoch;
  }
  return kForever;
}

Schedule::Place Schedule::find(std::uint64_t turn) const {
  Place place = epoch_at(0, base);
  while (turn >= place.steps) {
    turn -= place.steps;
    const std::uint64_t dealt = drop_last ? place.steps * positions_per_step() : place.available;
    const std::uint64_t before = skipped_before(place, dealt);
    place = epoch_at(place.number + 1, place.base + place.start + dealt + before);
    // Epochs from which nothing is skipped are all alike.
    const std::uint64_t alike = next_skipping_epoch(place.number) - place.number;
    if (place.steps == 0) break;
    if (alike > 0) {
      const std::uint64_t passed = std::min(turn / place.steps, alike);
      const std::uint64_t span = drop_last ? place.steps * positions_per_step() : size;
      place = epoch_at(place.number + passed, place.base + passed * span);
      turn -= passed * steps_of(size);
    }
  }
  place.step = turn;
  return place;
}

// Positions that are skipped before the available one, counted from the start of the place.
std::uint64_t Schedule::skipped_before(const Place& place, std::uint64_t available) const {
  std::uint64_t at = place.start + available, skipped = 0;
  for (const Skip& skip : skips) {
    if (skip.epoch != epoch + place.number || skip.last <= place.start) continue;
    const std::uint64_t first = std::max(skip.first, place.start);
    if (first > at) break;
    at += skip.last - first;
    skipped += skip.last - first;
  }
  return skipped;
}

// The first position from `after` on at which a skip starts; kForever where none does.
std::uint64_t Schedule::next_skip(std::uint64_t of_epoch, std::uint64_t after) const {
  for (const Skip& skip : skips) {
    if (skip.epoch == of_epoch && skip.first > after) return skip.first;
  }
  return kForever;
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

Schedule::Turn Schedule::at(std::uint64_t turn) const {
  const Place place = find(turn);
  const std::uint64_t available = place.step * positions_per_step();
  const std::uint64_t skipped = skipped_before(place, available);
  return {.epoch = epoch + place.number,
          .step = (place.number == 0 ? step : 0) + place.step + skipped / positions_per_step(),
          .position = place.start + available + skipped,
          .base = place.base,
          .left = place.steps - place.step};
}

std::uint64_t Schedule::count(std::uint64_t turn) const {
  const Place place = find(turn);
  return std::min(batch_size, place.available - (place.step * world_size + rank) * batch_size);
}

void Schedule::fill(const Order& order, std::uint64_t turn,
                    std::span<std::uint64_t> samples) const {
  const Place place = find(turn);
  const std::uint64_t of_epoch = epoch + place.number;
  std::uint64_t available = (place.step * world_size + rank) * batch_size;
  while (!samples.empty()) {
    const std::uint64_t from = place.start + available + skipped_before(place, available);
    const std::uint64_t run =
        std::min<std::uint64_t>(samples.size(), next_skip(of_epoch, from) - from);
    order.fill(continuous ? 0 : of_epoch, continuous ? place.base + from : from,
               samples.first(run));
    available += run;
    samples = samples.subspan(run);
  }
}

std::optional<Schedule::Owner> Schedule::owner(std::uint64_t of_epoch,
                                               std::uint64_t at_position) const {
  // What lies before the schedule is told as if these sizes had held from the start of the epoch.
  const bool behind = of_epoch < epoch || (of_epoch == epoch && at_position < position);
  const std::uint64_t start = of_epoch == epoch && !behind ? position : 0;
  std::uint64_t available = size - start, before = at_position - start, skipped = 0;
  for (const Skip& skip : skips) {
    if (skip.epoch != of_epoch || skip.last <= start || behind) continue;
    const std::uint64_t first = std::max(skip.first, start);
    if (at_position >= first && at_position < skip.last) return std::nullopt;
    available -= skip.last - first;
    if (first < at_position) skipped += skip.last - first;
  }
  before -= skipped;
  const std::uint64_t each = positions_per_step();
  if (drop_last && before / each >= available / each) return std::nullopt;
  return Owner{.step = (start == 0 ? 0 : step) + before / each + skipped / each,
               .rank = before / batch_size % world_size,
               .row = before % batch_size};
}

}  // namespace lowtide
