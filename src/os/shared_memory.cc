#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "lowtide/error.h"

namespace lowtide {

namespace {

std::string descriptor_path(int fd) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t size_bytes)
    : fd_(::memfd_create("lowtide", MFD_CLOEXEC)), size_bytes_(size_bytes) {
  if (fd_ < 0) throw IoError(errno, "memfd_create", "");
  if (::ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0) {
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
  return descriptor_path(fd_);
}

OpenName::OpenName(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) throw IoError(errno, "open", path);
}

OpenName::~OpenName() {
  ::close(fd_);
}

std::string OpenName::path() const {
  return descriptor_path(fd_);
}

}  // namespace lowtide
