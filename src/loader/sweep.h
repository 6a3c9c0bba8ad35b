// sweep.h - upcoming batches in file order: one sweep over the data after the other.
//
// Many batches are in flight. Their samples are sorted into bins by their offset in the data, and
// the sweep visits the bins in order, over and over. A batch may join at any time, and is complete
// once the sweep has come full circle. So at every moment, all available memory is used for samples
// that the sweep is about to reach, which are as close together as the memory allows: a disk reads
// them faster, neighbours can be read together, and the kernel finds cached pages faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "loader/bins.h"
#include "loader/planner.h"
#include "os/memory.h"

namespace lowtide {

class SweepPlanner final : public Planner {
 public:
  explicit SweepPlanner(PlanContext& context);

  // Whether this many batches can be in flight: a sample and its place must fit into 64 bits.
  [[nodiscard]] static bool can_sort(const Dataset& dataset, std::uint64_t rows,
                                     std::uint64_t batches);

  // Whether reading through it is faster than reading straight.
  [[nodiscard]] bool pays() const;
  // Requires that it is idle. Memory is taken again when it is needed.
  void free_memory();

  [[nodiscard]] bool work(const BatchQueue::News& news, bool may_plan) override;
  [[nodiscard]] std::size_t wake_below() const override { return wake_below_; }
  void landed(const LoaderSet& set) noexcept override;
  [[nodiscard]] bool idle() const override { return flying_ == 0; }

 private:
  // A batch that is being read.
  struct Flight {
    Batch batch = {};            // what it is read into; none: its bytes are in raw_
    std::byte* bytes = nullptr;  // where its samples go
    std::uint64_t size_bytes = 0;
    std::uint64_t rows = 0;
    // Of the batch. Copied here, because every sample needs them.
    const Column* columns = nullptr;
    const std::uint64_t* offsets = nullptr;
    std::uint64_t left = 0;  // samples that have not landed, times their parts
    std::exception_ptr error = nullptr;
  };

  [[nodiscard]] bool hand_over(const BatchQueue::News& news);
  [[nodiscard]] bool submit();
  [[nodiscard]] bool plan(const BatchQueue::News& news);
  [[nodiscard]] std::uint64_t most_flying() const;
  [[nodiscard]] bool gives_up();
  [[nodiscard]] bool prepare(std::uint64_t held);
  [[nodiscard]] Batch delivered();
  [[nodiscard]] bool passes();
  void join(std::uint64_t turn);
  void cut(LoaderSet* set);
  void locate(std::span<const std::uint64_t> keys, std::size_t number, std::uint64_t part,
              std::vector<Read>* reads);
  void make_ring(std::uint64_t batches);
  void clear();

  [[nodiscard]] std::uint64_t slot_of(std::uint64_t turn) const { return turn % ring_.size(); }
  [[nodiscard]] Flight& front() { return ring_[slot_of(first_turn_)]; }

  PlanContext& c_;
  const std::uint64_t batch_rows_, parts_;
  const unsigned row_bits_;
  std::vector<Flight> ring_;      // by turn
  std::uint64_t first_turn_ = 0;  // the first one in flight
  std::uint64_t flying_ = 0;      // flights
  std::uint64_t complete_ = 0;    // of them, those of which everything has landed
  std::uint64_t most_ = 0;        // batches that may fly; grows from sweep to sweep
  std::uint64_t swept_ = 0;       // sets since the last moment at which none flew
  bool joining_ = false;          // batches join until the room is used
  bool resting_ = false;          // enough batches are ready
  std::size_t wake_below_ = 0;
  bool failed_ = false;       // a set failed; nothing more is cut
  std::exception_ptr error_;  // of that set
  std::uint64_t error_turn_ = 0;

  Bins bins_;  // places are slot << row_bits_ | row
  // Samples as they are read, if they are not delivered so: of equal size, or of different sizes.
  Memory raw_;
  std::shared_ptr<Pool> staging_;
  std::vector<std::uint64_t> samples_;
  std::vector<std::byte*> targets_;
  std::vector<Batch> ready_;
  Batch prepared_;                    // the one that joins next, if samples differ in length
  std::exception_ptr prepare_error_;  // why there is none
};

}  // namespace lowtide
