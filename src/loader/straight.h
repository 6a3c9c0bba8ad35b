// straight.h - upcoming batches that are read straight into their buffers, several together.
//
// For bytes that are in memory, or too far apart to merge. The samples of a group are read in file
// order, because the kernel finds the pages of cached samples faster that way. Only as many batches
// are ahead as keep the engine busy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "loader/cutter.h"
#include "loader/planner.h"

namespace lowtide {

class StraightPlanner final : public Planner {
 public:
  explicit StraightPlanner(PlanContext& context);

  [[nodiscard]] bool work(const BatchQueue::News& news, bool may_plan) override;
  [[nodiscard]] std::size_t wake_below() const override { return wake_below_; }
  void landed(const LoaderSet& set) noexcept override;
  [[nodiscard]] bool idle() const override { return groups_.empty(); }

 private:
  // Batches that are read together and become ready together.
  struct Group {
    std::uint64_t first_turn = 0;
    std::vector<Batch> batches;
    std::size_t pushed = 0;  // of the batches
    std::size_t flying = 0;  // sets
    bool cut = false;        // all sets have been submitted
    std::exception_ptr error = nullptr;

    [[nodiscard]] bool landed() const { return cut && flying == 0; }
  };

  [[nodiscard]] bool hand_over();
  [[nodiscard]] bool submit();
  [[nodiscard]] bool plan(const BatchQueue::News& news);
  void fill(Group* group, std::uint64_t turns);
  [[nodiscard]] std::uint64_t most_together() const;

  PlanContext& c_;
  Cutter cutter_;  // of the last group
  std::deque<Group> groups_;
  std::size_t pending_ = 0;        // batches of all groups that are not pushed
  std::uint64_t group_turns_ = 1;  // of the next group; doubles
  std::size_t wake_below_ = 0;
  std::vector<std::byte*> rows_;          // where the samples of each batch of the last group go
  std::vector<const std::byte*> staged_;  // samples of the batch that is being delivered
};

}  // namespace lowtide
