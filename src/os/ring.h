// ring.h - an io_uring that reads. Made, used and destroyed by one thread; never used across a
// fork.
//
// Built without liburing, or where the kernel, a sysctl or a seccomp filter forbids io_uring, there
// is no Ring: probe() says so by trying, and says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lowtide {

class Ring {
 public:
  struct Done {
    std::uint64_t tag;
    std::int32_t result;  // bytes read, or -errno
  };

  // Empty when a ring can be made and completes a no-op, else the reason
  // ("io_uring_setup: Operation not permitted", "built without liburing").
  [[nodiscard]] static std::string probe();
  // Whether this build has a ring at all.
  [[nodiscard]] static bool built_in() noexcept;

  // Throws IoError (op "io_uring_setup").
  explicit Ring(unsigned depth);
  // Waits for reads in flight, because the kernel writes into their memory until they are done; not
  // in a forked child, whose copy only lets go.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Whether it is not counted against the user's locked memory, so that many can be had (Linux
  // 5.12).
  [[nodiscard]] bool uncounted() const;
  [[nodiscard]] unsigned depth() const { return depth_; }

  // The kernel keeps this descriptor at hand instead of looking it up for every read, which is
  // a tenth of a short read from the page cache; it holds one, and -1 lets go. No reads may be in
  // flight, and the descriptor stays open for as long as it is held. Where the kernel refuses,
  // it holds none, and reads work as before.
  void hold(int fd) noexcept;

  // Queues one read; false when `depth` reads are queued or in flight. `tag` comes back in Done.
  [[nodiscard]] bool read(int fd, std::uint64_t offset_bytes, std::byte* into,
                          std::uint32_t size_bytes, std::uint64_t tag) noexcept;

  // Hands queued reads to the kernel and waits until at least `wait` of those in flight are done
  // (0: does not wait). EINTR and EAGAIN are retried. Returns 0 or an errno. Where the kernel takes
  // no more before finished reads are reaped it returns 0 early: reap, and submit again.
  [[nodiscard]] int submit(unsigned wait) noexcept;

  // Takes up to `max` finished reads; never waits.
  [[nodiscard]] std::size_t reap(Done* out, std::size_t max) noexcept;

  [[nodiscard]] unsigned in_flight() const { return in_flight_; }  // queued ones included

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  unsigned depth_ = 0;
  unsigned in_flight_ = 0;
  int held_fd_ = -1;
};

}  // namespace lowtide
