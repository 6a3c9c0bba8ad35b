// schedule.h - which positions of the one global order belong to which step of which rank, over any
// number of epochs.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "loader/skips.h"
#include "order/order.h"

namespace lowtide {

// With W ranks and batch size B, rank r gets B positions from (s * W + r) * B on at step s of an
// epoch. Every position belongs to one step of one rank; the last batch of an epoch may be short.
// With drop_last every rank has the same number of steps, every step is full, and the rest of the
// epoch is left out.
//
// A schedule may start anywhere in its first epoch. The positions from there on are dealt out as
// above, so a run can continue under another batch size or world size without repeating a position.
// `turn` counts the steps of this rank from the start of the schedule, over all epochs. Everything
// is arithmetic: O(1), except for the list of skips. Any thread.
struct Schedule {
  static constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t size = 0;   // positions per epoch
  std::uint64_t epoch = 0;  // the first epoch
  std::uint64_t batch_size = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  bool drop_last = false;

  std::uint64_t epochs = 1;    // how many, including the first; or kForever
  std::uint64_t position = 0;  // where the first epoch starts; positions before it are done
  std::uint64_t step = 0;      // the number of the first step
  // The order does not start again with each epoch: its positions continue, and nothing is left out
  // between two epochs. `base` positions came before the first epoch of this schedule.
  bool continuous = false;
  std::uint64_t base = 0;
  Skips skips = {};  // past ones only affect owner()

  // A turn as the user knows it: its epoch, its step in that epoch, and the position in that epoch
  // at which all ranks together start it.
  struct Turn {
    std::uint64_t epoch = 0;
    std::uint64_t step = 0;
    std::uint64_t position = 0;
    std::uint64_t base = 0;
    std::uint64_t left = 0;  // turns of this rank in this epoch, this one included
  };

  [[nodiscard]] std::uint64_t turns() const;  // of this rank; kForever if there is no end
  [[nodiscard]] Turn at(std::uint64_t turn) const;
  // The number-th step of an epoch, counting from where this schedule enters it. `number` may be at
  // most the `left` of number 0, which gives the end of the epoch. Requires of_epoch >= epoch.
  [[nodiscard]] Turn in_epoch(std::uint64_t of_epoch, std::uint64_t number) const;
  [[nodiscard]] std::uint64_t count(std::uint64_t turn) const;  // samples of this rank
  // Writes the samples of a turn. Throws std::out_of_range for one that is not below `limit`, which
  // means that a borrowed order was changed after it was checked.
  void fill(const Order& order, std::uint64_t turn, std::uint64_t limit,
            std::span<std::uint64_t> samples) const;

  // The rank and step that get a position of an epoch under these sizes, and the row in the batch.
  // nullopt if the position is skipped or belongs to the rest that is left out.
  struct Owner {
    std::uint64_t step = 0;
    std::uint64_t rank = 0;
    std::uint64_t row = 0;
  };
  [[nodiscard]] std::optional<Owner> owner(std::uint64_t of_epoch, std::uint64_t at_position) const;

  // Steps of this rank in a whole epoch from which nothing is skipped.
  [[nodiscard]] std::uint64_t steps_in_epoch() const { return steps_of(size); }
  // For all ranks together; saturates.
  [[nodiscard]] std::uint64_t positions_per_step() const;

 private:
  struct Place;  // a turn as an epoch, counted from 0, and a step in what is left of that epoch
  [[nodiscard]] Place find(std::uint64_t turn) const;
  [[nodiscard]] std::uint64_t available_from(std::uint64_t of_epoch, std::uint64_t start) const;
  [[nodiscard]] Place epoch_at(std::uint64_t number, std::uint64_t base_of) const;
  [[nodiscard]] Place epoch_after(const Place& place) const;
  [[nodiscard]] Place epochs_on(const Place& place, std::uint64_t number) const;
  [[nodiscard]] Turn turn_of(const Place& place) const;
  [[nodiscard]] std::uint64_t steps_of(std::uint64_t positions) const;
  [[nodiscard]] std::uint64_t skipped_before(const Place& place, std::uint64_t available) const;
  [[nodiscard]] std::uint64_t next_skipping_epoch(std::uint64_t from) const;
};

// Throws std::invalid_argument for a batch_size or world_size of 0 and for a rank that is not below
// world_size.
void check_shares(const Schedule& schedule);

}  // namespace lowtide
