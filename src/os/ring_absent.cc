// Ring for a build without liburing: every use reports that there is none.
#include <cerrno>

#include "lowtide/error.h"
#include "os/ring.h"
#include "os/sys.h"

namespace lowtide {

int sys::real_ring_init(unsigned, struct io_uring*) {
  return -ENOSYS;
}
int sys::real_ring_submit_and_wait(struct io_uring*, unsigned) {
  return -ENOSYS;
}

int sys::real_ring_hold(struct io_uring*, int) {
  return -ENOSYS;
}

struct Ring::Impl {};

std::string Ring::probe() {
  return "built without liburing";
}

bool Ring::built_in() noexcept {
  return false;
}

Ring::Ring(unsigned depth) : impl_(&made_.get()), depth_(depth) {
  throw IoError(ENOSYS, "io_uring_setup", "", std::nullopt, "built without liburing");
}

Ring::~Ring() = default;

bool Ring::read(int, std::uint64_t, std::byte*, std::uint32_t, std::uint64_t) noexcept {
  return false;
}

bool Ring::uncounted() const {
  return false;
}

void Ring::hold(int) noexcept {
  held_fd_ = -1;
}

int Ring::submit(unsigned) noexcept {
  return ENOSYS;
}

std::size_t Ring::reap(Done*, std::size_t) noexcept {
  return 0;
}

}  // namespace lowtide
