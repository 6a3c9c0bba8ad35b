// page.h - the memory that guard shares with the shim in every process it covers.
//
// guard creates it, zeroed except for its number, and reads it after the program has ended,
// whatever ended it. A shim claims a slot when it starts (its "hello") and adds to the sums as it
// works. All other fields are plain atomics without any order between them, so a process that is
// killed half way leaves nothing broken.
//
// The page is found by a path that contains guard's process id. A program that outlives guard
// passes that path on, and one day it may name another process's file: hence the number, and
// open_page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lowtide::ceiling {

inline constexpr const char* kSettingsVariable = "LOWTIDE_GUARD";
inline constexpr const char* kPreloadVariable = "LD_PRELOAD";

struct Slot {
  static constexpr std::uint32_t kEnded = 1;   // the process no longer holds anything
  static constexpr std::uint32_t kKept = 2;    // the kernel did not release what was trimmed
  static constexpr std::uint32_t kUndone = 4;  // the program needs trimmed pages again at once

  std::atomic<std::int32_t> pid;              // 0: free
  std::atomic<std::uint32_t> state;           // bits of the above
  std::atomic<std::uint64_t> resident_bytes;  // of its maps, as of its last look
};

struct Page {
  static constexpr std::size_t kSlots = 1024;

  std::uint64_t number;                   // random, chosen by guard; also in the settings. Never 0
  std::atomic<std::uint64_t> processes;   // that said hello
  std::atomic<std::uint64_t> maps;        // that came under the ceiling
  std::atomic<std::uint64_t> peak_bytes;  // of one process; with tree, of the sum
  std::atomic<std::uint64_t> trims;
  std::atomic<std::uint64_t> released_bytes;
  // What could not be done.
  std::atomic<std::uint64_t> kept_bytes;       // the most that stayed mapped after a trim
  std::atomic<std::uint64_t> maps_left_out;    // left out because the table was full
  std::atomic<std::uint64_t> threads_refused;  // processes in which the trimmer could not start
  std::atomic<std::uint64_t> undone;      // trims of pages that the program needs again at once
  std::atomic<std::uint64_t> sandboxed;   // processes that restricted their system calls
  std::atomic<std::uint64_t> slots_used;  // slots[0 .. slots_used) have been claimed at some point
  Slot slots[kSlots];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Maps the page that guard made with this number, permanently. Returns null for any other file and
// neither writes nor maps it: guard's page is a memfd of exactly this size that contains the number
// and is sealed against resizing (a file that shrinks under a map kills its reader).
[[nodiscard]] Page* open_page(const char* path, std::uint64_t number);

inline void raise_to(std::atomic<std::uint64_t>& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace lowtide::ceiling
