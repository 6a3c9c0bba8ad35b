// accelerator.h - a device that copies from the memory of this process in its own time, such as a
// GPU. What it reads must stay unchanged until it has finished; a fence says when that is.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lowtide {

// Outlives all memory that it has pinned. Any thread, except that a child of a fork must not call
// it: the device belongs to the parent.
class Accelerator {
 public:
  // Passes when everything that was started on the device before it has ended. nullptr: there is
  // nothing to wait for.
  using Fence = void*;

  virtual ~Accelerator() = default;

  // Pinned memory cannot be moved or swapped, so that the device can read it by itself. Makes its
  // pages resident. Takes about as long as clearing them. False: the system refuses.
  [[nodiscard]] virtual bool pin(std::span<std::byte> memory) noexcept = 0;
  // Required before the memory is freed, once the device has finished with it.
  virtual void unpin(std::span<std::byte> memory) noexcept = 0;

  // The caller releases it. Does not wait, unless no fence can be made; then it waits at once and
  // returns nullptr.
  [[nodiscard]] virtual Fence fence() noexcept = 0;
  [[nodiscard]] virtual bool passed(Fence fence) noexcept = 0;  // does not wait
  virtual void wait(Fence fence) noexcept = 0;
  virtual void release(Fence fence) noexcept = 0;
};

// The room `system` has it. The current CUDA device of the calling thread, through the runtime
// library that this process has loaded, for example with PyTorch; nothing is loaded here. Its
// fences are behind what was started on the default stream and on blocking streams, but not on
// non-blocking ones, such as the side streams of PyTorch. If not `fenced`, every fence is nullptr.
// Returns nullptr if there is no device, and puts the reason into `reason`.
[[nodiscard]] std::shared_ptr<Accelerator> find_cuda(bool fenced, std::string* reason);

}  // namespace lowtide
