// ring.h - an io_uring for reads. Created, used and destroyed by one thread; never used across a
// fork.
//
// If it was built without liburing, or if the kernel, a sysctl or a seccomp filter forbids
// io_uring, no Ring can be made: probe() finds out by trying, and returns the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "os/per_process.h"

namespace lowtide {

class Ring {
 public:
  struct Done {
    std::uint64_t tag;
    std::int32_t result;  // bytes read, or -errno
  };

  // Empty if a ring can be made and completes a no-op; otherwise the reason
  // ("io_uring_setup: Operation not permitted", "built without liburing").
  [[nodiscard]] static std::string probe();
  // Whether this build has a ring at all.
  [[nodiscard]] static bool built_in() noexcept;

  // Throws IoError (op "io_uring_setup").
  explicit Ring(unsigned depth);
  // Waits for reads in flight, because the kernel writes into their memory until they are done. The
  // child of a fork does not wait; it leaves the ring to the parent.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Whether it does not count towards the user's locked memory, so that many can exist (Linux
  // 5.12).
  [[nodiscard]] bool uncounted() const;
  [[nodiscard]] unsigned depth() const { return depth_; }

  // Registers this descriptor, so that the kernel does not look it up for every read; that is a
  // tenth of a short read from the page cache. There is one slot; -1 empties it. No reads may be in
  // flight, and the descriptor must stay open while it is registered. If the kernel refuses, the
  // slot is empty and reads work as before.
  void hold(int fd) noexcept;

  // Queues one read; false if `depth` reads are queued or in flight. Done returns `tag`.
  [[nodiscard]] bool read(int fd, std::uint64_t offset_bytes, std::byte* into,
                          std::uint32_t size_bytes, std::uint64_t tag) noexcept;

  // Submits queued reads and waits until at least `wait` of those in flight are done (0: does not
  // wait). Retries EINTR and EAGAIN. Returns 0 or an errno. If the kernel accepts no more until
  // finished reads are reaped, it returns 0 early: reap, and submit again.
  [[nodiscard]] int submit(unsigned wait) noexcept;

  // Takes up to `max` finished reads; never waits.
  [[nodiscard]] std::size_t reap(Done* out, std::size_t max) noexcept;

  [[nodiscard]] unsigned in_flight() const { return in_flight_; }  // including queued ones

 private:
  struct Impl;
  PerProcess<Impl> made_;
  Impl* const impl_;  // only the process that made it uses it
  unsigned depth_ = 0;
  unsigned in_flight_ = 0;
  int held_fd_ = -1;
};

}  // namespace lowtide
