#include "os/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lowtide/error.h"

namespace lowtide {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  do {
    fd_ = ::open(path_.c_str(), kFlags, 0666);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) throw IoError(errno, "open", path_);
}

AppendFile::~AppendFile() {
  ::close(fd_);
}

int AppendFile::append(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

}  // namespace lowtide
