#include "os/ring.h"

#include <liburing.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {

int sys::real_ring_init(unsigned entries, struct io_uring* ring) {
  return ::io_uring_queue_init(entries, ring, 0);
}

int sys::real_ring_submit_and_wait(struct io_uring* ring, unsigned count) {
  return ::io_uring_submit_and_wait(ring, count);
}

// Uses the only slot of the ring's file table; the first call creates the table.
int sys::real_ring_hold(struct io_uring* ring, int fd) {
  const int updated = ::io_uring_register_files_update(ring, 0, &fd, 1);
  return updated == -ENXIO ? ::io_uring_register_files(ring, &fd, 1) : std::min(updated, 0);
}

struct Ring::Impl {
  struct io_uring ring {};
};

namespace {

constexpr unsigned kSubmitAgainLimit = 1000;

std::string setup_hint(int err) {
  if (err == EPERM) return "forbidden by a seccomp filter or the sysctl kernel.io_uring_disabled";
  if (err == ENOMEM) return "raise the limit on locked memory (ulimit -l)";
  return "";
}

std::string failure(const char* op, int err) {
  return std::string(op) + ": " + std::generic_category().message(err);
}

// The memory of a ring that ended may belong to the next one at once, on another thread. liburing
// makes these system calls itself, so only this counter tells a sanitizer which of them was first.
std::atomic<std::uint64_t> rings_ended{0};

int init_ring(unsigned depth, struct io_uring* ring) {
  const int made = sys::table.ring_init(depth, ring);
  rings_ended.fetch_add(0, std::memory_order_acquire);
  return made;
}

void end_ring(struct io_uring* ring) {
  rings_ended.fetch_add(1, std::memory_order_release);
  ::io_uring_queue_exit(ring);
}

// Submits what is queued and takes one completion; returns its result, or the submission's errno.
struct Trial {
  int err = 0;
  int result = 0;
};
Trial complete_one(struct io_uring* ring) {
  for (;;) {
    const int submitted = sys::table.ring_submit_and_wait(ring, 1);
    struct io_uring_cqe* cqe = nullptr;
    if (::io_uring_peek_cqe(ring, &cqe) == 0) {
      const int result = cqe->res;
      ::io_uring_cqe_seen(ring, cqe);
      return {0, result};
    }
    if (submitted < 0 && submitted != -EINTR) return {-submitted, 0};
  }
}

std::string try_ring(struct io_uring* ring) {
  ::io_uring_prep_nop(::io_uring_get_sqe(ring));
  const Trial nop = complete_one(ring);
  if (nop.err != 0) return failure("io_uring_enter", nop.err);
  if (nop.result < 0) return failure("io_uring no-op", -nop.result);
  // A kernel that supports this read (5.6) reports a bad descriptor; an older one, EINVAL.
  ::io_uring_prep_read(::io_uring_get_sqe(ring), -1, nullptr, 0, 0);
  const Trial read = complete_one(ring);
  if (read.err != 0) return failure("io_uring_enter", read.err);
  if (read.result != -EBADF) return "io_uring: this kernel lacks plain reads (before Linux 5.6)";
  return "";
}

}  // namespace

std::string Ring::probe() {
  struct io_uring ring {};
  const int made = init_ring(2, &ring);
  if (made < 0) return failure("io_uring_setup", -made);
  const std::string why_not = try_ring(&ring);
  end_ring(&ring);
  return why_not;
}

bool Ring::built_in() noexcept {
  return true;
}

Ring::Ring(unsigned depth) : impl_(&made_.get()), depth_(depth) {
  if (depth == 0) throw std::invalid_argument("depth: expected at least 1, found 0");
  const int made = init_ring(depth, &impl_->ring);
  if (made < 0) throw IoError(-made, "io_uring_setup", "", std::nullopt, setup_hint(-made));
}

Ring::~Ring() {
  if (made_.find() == nullptr) return;
  struct io_uring* const ring = &impl_->ring;
  // Queued reads that were never submitted are dropped: io_uring_wait_cqe does not submit them.
  unsigned pending = in_flight_ - std::min(in_flight_, ::io_uring_sq_ready(ring));
  while (pending > 0) {
    struct io_uring_cqe* cqe = nullptr;
    const int waited = ::io_uring_wait_cqe(ring, &cqe);
    if (waited == -EINTR || waited == -EAGAIN) continue;
    if (waited < 0) break;
    ::io_uring_cqe_seen(ring, cqe);
    --pending;
  }
  // Otherwise the file would stay open until the kernel has destroyed the ring.
  if (held_fd_ >= 0) hold(-1);
  end_ring(ring);
}

void Ring::hold(int fd) noexcept {
  held_fd_ = sys::table.ring_hold(&impl_->ring, fd) == 0 ? fd : -1;
}

bool Ring::uncounted() const {
  return (impl_->ring.features & IORING_FEAT_NATIVE_WORKERS) != 0;
}

bool Ring::read(int fd, std::uint64_t offset_bytes, std::byte* into, std::uint32_t size_bytes,
                std::uint64_t tag) noexcept {
  if (in_flight_ >= depth_) return false;
  struct io_uring_sqe* const sqe = ::io_uring_get_sqe(&impl_->ring);
  if (sqe == nullptr) return false;
  const bool held = fd >= 0 && fd == held_fd_;
  ::io_uring_prep_read(sqe, held ? 0 : fd, into, size_bytes, offset_bytes);
  if (held) ::io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
  ::io_uring_sqe_set_data64(sqe, tag);
  ++in_flight_;
  return true;
}

int Ring::submit(unsigned wait) noexcept {
  struct io_uring* const ring = &impl_->ring;
  const unsigned wanted = std::min(wait, in_flight_);
  unsigned again = 0;
  // Repeated if a signal interrupted the wait, or if a bad read ended the submission before the
  // rest.
  while (::io_uring_sq_ready(ring) > 0 || ::io_uring_cq_ready(ring) < wanted) {
    const int submitted = sys::table.ring_submit_and_wait(ring, wanted);
    if (submitted >= 0 || submitted == -EINTR) continue;
    if (submitted != -EAGAIN && submitted != -EBUSY) return -submitted;
    if (::io_uring_cq_ready(ring) > 0) return 0;
    if (++again > kSubmitAgainLimit) return -submitted;
    std::this_thread::yield();
  }
  return 0;
}

std::size_t Ring::reap(Done* out, std::size_t max) noexcept {
  struct io_uring* const ring = &impl_->ring;
  std::size_t count = 0;
  unsigned head = 0;
  struct io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(ring, head, cqe) {
    if (count == max) break;
    out[count++] = {::io_uring_cqe_get_data64(cqe), sys::table.ring_result(cqe->res)};
  }
  ::io_uring_cq_advance(ring, static_cast<unsigned>(count));
  in_flight_ -= static_cast<unsigned>(count);
  return count;
}

}  // namespace lowtide
