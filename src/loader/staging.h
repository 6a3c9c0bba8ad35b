// staging.h - the look-ahead of a loader over data on a disk: the samples of many coming batches,
// fetched in the order in which they lie, kept compactly, delivered later.
//
// A Window is a run of coming steps. Its samples are sorted by place and read in pieces into slots
// of one sample each; when all have come, its batches are gathered from the slots, and each slot is
// free for the next window as soon as its sample was delivered. So the next window fills while this
// one empties, and both together need little more than the room of one. Used by one thread;
// Window::landed is guarded by the loader.
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
  std::uint64_t last_step = 0;  // one behind
  std::uint64_t next_step = 0;  // to be gathered
  std::uint32_t samples = 0;
  std::uint32_t submitted = 0;  // of the present part, in file order
  std::uint32_t gathered = 0;   // delivered, in the order of the steps
  std::uint64_t part = 0;
  std::uint64_t landed = 0;            // sample parts that have come
  std::vector<std::uint32_t> slot_of;  // by place in the window

  [[nodiscard]] bool empty() const { return first_step == last_step; }
};

class Staging {
 public:
  // Bookkeeping bytes that come with each slot.
  static constexpr std::uint64_t kSlotOverheadBytes = 8 + 8 + 2 * 4 + 4;

  Staging(const Dataset& dataset, const Order& order, const Schedule& schedule,
          std::uint32_t slots);

  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_); }

  // Makes `window` the steps first .. last - 1 and sorts their samples. One window is planned at a
  // time: all of the previous one must be submitted.
  void plan(std::uint64_t first, std::uint64_t last, Window* window);

  // How many samples of the window can be submitted now: what is left of its present part, or the
  // free slots if those are fewer.
  [[nodiscard]] std::uint32_t submittable(const Window& window) const;
  // At most `most` of them, and of the parts after this one: which they are, where they go, and
  // their reads.
  void take_piece(std::uint32_t most, Window* window, std::vector<std::uint64_t>* samples,
                  std::vector<std::byte*>* targets, std::vector<Read>* reads);

  // Delivers the samples of the window's next step to `out` and frees their slots. All of the
  // window must have landed.
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
  std::vector<const std::byte*> staged_;       // of the step that is gathered
  std::vector<std::uint64_t> keys_, scratch_;  // sample << place_bits_ | place in the window
};

}  // namespace lowtide
