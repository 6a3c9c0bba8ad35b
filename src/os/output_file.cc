#include "os/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {
namespace {

// 0, or the errno of the first failed write.
int write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = sys::table.write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string hint_of(int err, const std::string& path) {
  if (err == ENOENT) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return "create the folder first: " + (folder.empty() ? "." : folder);
  }
  if (err == ENOSPC || err == EDQUOT) return "free some space, or write to another disk";
  return "";
}

[[noreturn]] void fail(int err, const char* op, const std::string& path) {
  throw IoError(err, op, path, std::nullopt, hint_of(err, path));
}

// Writes and closes the file; a network file system may report a full disk only on close.
int fill(int fd, std::string_view bytes) {
  const int err = write_all(fd, bytes);
  const int closed = sys::table.close(fd);
  return err == 0 && closed != 0 ? errno : err;
}

void write_through(const std::string& path, std::string_view bytes) {
  const int fd = sys::table.open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(errno, "open", path);
  const int err = fill(fd, bytes);
  if (err != 0) fail(err, "write", path);
}

std::string beside(const std::string& path) {
  static std::atomic<unsigned> count{0};
  const std::string name =
      ".lowtide-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
  return std::filesystem::path(path).parent_path() / name;
}

}  // namespace

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
  return write_all(fd_, bytes);
}

void write_whole(const std::string& path, std::string_view bytes) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::is_directory(status)) fail(EISDIR, "write", path);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_through(path, bytes);
  // A link stays a link: its target is replaced.
  const std::string target =
      fs::is_regular_file(status) ? fs::canonical(path, none).string() : path;
  const std::string temporary = beside(target.empty() ? path : target);
  const int fd = sys::table.create(temporary.c_str(), O_WRONLY | O_EXCL | O_CLOEXEC);
  if (fd < 0) fail(errno, "create", path);
  int err = fill(fd, bytes);
  const char* op = "write";
  if (err == 0 &&
      sys::table.rename(temporary.c_str(), (target.empty() ? path : target).c_str()) != 0) {
    err = errno;
    op = "rename";
  }
  if (err == 0) return;
  ::unlink(temporary.c_str());
  fail(err, op, path);
}

}  // namespace lowtide
