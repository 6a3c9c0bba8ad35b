// straight.h - upcoming batches in the order of their turns, several together.
//
// For samples that are read in file order anyway, that the engine holds, or that are too far apart
// to merge. Only as many batches are ahead as keep the engine busy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "loader/planner.h"

namespace lowtide {

class StraightPlanner final : public Planner {
 public:
  explicit StraightPlanner(PlanContext& context) : c_(context) {}

  [[nodiscard]] bool work(const BatchQueue::News& news, bool may_plan) override;
  [[nodiscard]] std::size_t wake_below() const override { return wake_below_; }
  void landed(const LoaderSet& set) noexcept override;
  [[nodiscard]] bool idle() const override { return groups_.empty(); }

 private:
  // Batches that are read together and become ready together.
  struct Group {
    std::uint64_t first_turn = 0;
    std::uint64_t turns = 0;
    std::vector<Batch> batches;
    std::size_t pushed = 0;  // of the batches
    std::size_t flying = 0;  // sets
    // What is cut next; rows in Fortran order have one part per column.
    std::uint64_t part = 0, row = 0;
    std::size_t batch = 0;
    bool cut = false;  // all sets have been submitted
    std::exception_ptr error = nullptr;

    [[nodiscard]] bool landed() const { return cut && flying == 0; }
  };

  [[nodiscard]] bool hand_over();
  [[nodiscard]] bool retreat();
  [[nodiscard]] bool submit();
  [[nodiscard]] bool plan(const BatchQueue::News& news);
  void fill(Group* group);
  void cut(Group* group, std::vector<Read>* reads);
  [[nodiscard]] std::uint64_t most_together() const;

  PlanContext& c_;
  std::deque<Group> groups_;
  std::size_t pending_ = 0;        // batches of all groups that are not pushed
  std::uint64_t group_turns_ = 1;  // of the next group; doubles
  std::uint64_t alone_until_ = 0;  // turns before this one are read in groups of one
  std::size_t wake_below_ = 0;
  std::vector<std::byte*> targets_;  // of the set that is being cut
};

}  // namespace lowtide
