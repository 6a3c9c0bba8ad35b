// staged.h - upcoming batches through sorted staging: the samples of many of them are read in file
// order into slots of one sample each, and the batches are gathered from the slots.
//
// For data on a disk whose upcoming samples are so close together that neighbours can be merged. A
// slot is free for the next group as soon as its sample has been delivered, so the next group fills
// while this one empties, and both together need little more room than one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "loader/cutter.h"
#include "loader/planner.h"
#include "os/memory.h"

namespace lowtide {

class StagedPlanner final : public Planner {
 public:
  // Bookkeeping bytes per slot.
  static constexpr std::uint64_t kSlotOverheadBytes = Cutter::kSampleBytes + 3 * 4;

  explicit StagedPlanner(PlanContext& context);

  // Whether reading through it is faster than reading straight.
  [[nodiscard]] bool pays() const;
  // Requires that it is idle. The slots are made again when they are needed.
  void free_slots() { memory_ = {}; }

  [[nodiscard]] bool work(const BatchQueue::News& news, bool may_plan) override;
  [[nodiscard]] std::size_t wake_below() const override { return wake_below_; }
  void landed(const LoaderSet& set) noexcept override;
  [[nodiscard]] bool idle() const override { return delivering_.empty() && reading_.empty(); }

 private:
  // A range of turns whose samples are read together.
  struct Group {
    std::uint64_t next_turn = 0;  // to be gathered
    std::uint64_t last_turn = 0;  // one past the last
    std::uint64_t first_turn = 0;
    std::size_t flying = 0;              // sets
    std::vector<std::uint32_t> slot_of;  // by batch * batch_rows + row
    std::exception_ptr error = nullptr;

    [[nodiscard]] bool empty() const { return next_turn == last_turn; }
  };

  [[nodiscard]] bool gather(const BatchQueue::News& news);
  [[nodiscard]] bool submit();
  [[nodiscard]] bool turn_over();
  [[nodiscard]] bool plan(const BatchQueue::News& news);
  void fill(std::uint64_t turns);
  void make_slots();
  [[nodiscard]] std::byte* slot(std::uint32_t number) const {
    return memory_.data() + number * c_.dataset.sample_bytes();
  }

  PlanContext& c_;
  const std::uint64_t batch_rows_;
  Cutter cutter_;  // of reading_
  Group delivering_, reading_;
  std::uint64_t group_turns_ = 1;  // of the next group; doubles
  std::size_t wake_below_ = 0;
  std::uint64_t slots_ = 0;
  Memory memory_;                         // of the slots; none until they are needed
  std::vector<std::uint32_t> free_;       // slots
  std::vector<std::uint64_t> samples_;    // of the turn that is being planned
  std::vector<const std::byte*> staged_;  // of the batch that is being gathered
};

}  // namespace lowtide
