// step_hook.h - reports a loader's steps to a profile of this process, if there is one, without
// depending on it.
#pragma once

#include <atomic>
#include <cstdint>

namespace lowtide {

// Called with every step that a loader hands out, on the thread that asked for it. nullptr: nobody
// watches. The meter sets it when a profile of this process starts.
using StepHook = void (*)(std::uint64_t epoch, std::uint64_t step);
inline std::atomic<StepHook> step_hook{nullptr};

// Costs one atomic load while nobody watches. Any thread.
inline void report_step(std::uint64_t epoch, std::uint64_t step) {
  if (const StepHook hook = step_hook.load(std::memory_order_acquire)) hook(epoch, step);
}

}  // namespace lowtide
