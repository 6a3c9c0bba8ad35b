#include "os/append_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  do {
    fd_ = sys::table.create(path_.c_str(), O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) throw IoError(errno, "open", path_);
}

AppendFile::~AppendFile() {
  sys::table.close(fd_);
}

int AppendFile::append(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = sys::table.write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

}  // namespace lowtide
