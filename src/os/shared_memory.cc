#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "lowtide/error.h"

namespace lowtide {

SharedMemory::SharedMemory(std::size_t size_bytes)
    : fd_(::memfd_create("lowtide", MFD_CLOEXEC | MFD_ALLOW_SEALING)), size_bytes_(size_bytes) {
  if (fd_ < 0) throw IoError(errno, "memfd_create", "");
  if (::ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0 &&
      ::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    void* const at = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at != MAP_FAILED) data_ = at;
  }
  if (data_ == nullptr) {
    const int err = errno;
    ::close(fd_);
    throw IoError(err, "mmap", "");
  }
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_bytes_);
  ::close(fd_);
}

std::string SharedMemory::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_);
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) {
    const ssize_t got = ::getrandom(&number, sizeof number, 0);
    if (got < 0 && errno != EINTR) throw IoError(errno, "getrandom", "");
    if (got != static_cast<ssize_t>(sizeof number)) number = 0;
  }
  return number;
}

}  // namespace lowtide
