// staging.h - the look-ahead over data on a disk: the samples of many upcoming batches are fetched
// in file order, kept compactly and delivered later.
//
// A Window is a range of upcoming steps. Its samples are sorted by file offset and read in pieces
// into slots of one sample each. When all have arrived, its batches are gathered from the slots. A
// slot is free for the next window as soon as its sample is delivered, so the next window fills
// while this one empties, and both together need little more room than one. Used by one thread;
// Window::landed is guarded by the Lookahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/dataset.h"
#include "loader/schedule.h"
#include "order/order.h"
#include "os/memory.h"

namespace lowtide {

struct Window {
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;  // one past the last
  std::uint64_t next_step = 0;  // to be gathered
  std::uint32_t samples = 0;
  std::uint32_t submitted = 0;  // of the current part, in file order
  std::uint32_t gathered = 0;   // delivered, in the order of the steps
  std::uint64_t part = 0;
  std::uint64_t landed = 0;            // sample parts that have arrived
  std::vector<std::uint32_t> slot_of;  // by place in the window

  [[nodiscard]] bool empty() const { return first_step == last_step; }
};

class Staging {
 public:
  // Bookkeeping bytes per slot.
  static constexpr std::uint64_t kSlotOverheadBytes = 8 + 8 + 2 * 4 + 4;

  Staging(const Dataset& dataset, const Order& order, const Schedule& schedule,
          std::uint32_t slots);

  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_); }

  // Makes `window` the steps first .. last - 1 and sorts their samples. One window is planned at a
  // time: all of the previous one must have been submitted.
  void plan(std::uint64_t first, std::uint64_t last, Window* window);

  // How many samples of the window can be submitted now: the rest of its current part, or the free
  // slots if they are fewer.
  [[nodiscard]] std::uint32_t submittable(const Window& window) const;
  // Takes at most `most` samples, from the current part and the ones after it. Returns the samples,
  // their targets and their reads.
  void take_piece(std::uint32_t most, Window* window, std::vector<std::uint64_t>* samples,
                  std::vector<std::byte*>* targets, std::vector<Read>* reads);

  // Delivers the samples of the window's next step to `out` and frees their slots. The whole window
  // must have landed.
  void gather(Window* window, std::span<const std::uint64_t> samples, std::byte* out);

 private:
  const Dataset& dataset_;
  const Order& order_;
  const Schedule& schedule_;
  const std::uint64_t slots_;
  const std::uint64_t sample_bytes_;
  unsigned place_bits_ = 1;
  Memory memory_;
  std::vector<std::uint32_t> free_;
  std::vector<const std::byte*> staged_;       // samples of the step that is being gathered
  std::vector<std::uint64_t> keys_, scratch_;  // sample << place_bits_ | place in the window
};

}  // namespace lowtide
