#include "os/write_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "core/checked.h"
#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {
namespace {

constexpr const char* kNoteName = "user.lowtide";
constexpr std::uint64_t kMostPerWrite = 1ULL << 30;  // Linux itself stops 4 KiB short of 2 GiB

template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

std::string hint_for(int err, const std::string& path) {
  if (err == ENOENT) return "create the folder first: " + folder_of(path);
  if (err == ENOSPC || err == EDQUOT) return "free some space, or write to another disk";
  if (err == EMFILE) return "this process has too many open files; raise the limit (ulimit -n)";
  return "";
}

struct statx status_of_output(int fd, const std::string& shown) {
  struct statx status {};
  const int done = uninterrupted(
      [&] { return sys::table.statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status); });
  if (done != 0) throw IoError(errno, "statx", shown);
  return status;
}

bool unsupported(int err) {
  return err == EOPNOTSUPP || err == ENOSYS || err == EINVAL || err == ENOLCK || err == EPERM;
}

}  // namespace

WriteFile WriteFile::create(const std::string& name, const std::string& shown) {
  const int fd = uninterrupted(
      [&] { return sys::table.create(name.c_str(), O_RDWR | O_EXCL | O_CLOEXEC | O_NOFOLLOW); });
  if (fd < 0) {
    const int err = errno;
    throw IoError(err, "create", shown, std::nullopt, hint_for(err, shown));
  }
  return {shown, fd};
}

std::optional<WriteFile> WriteFile::find(const std::string& name, const std::string& shown) {
  const int fd =
      uninterrupted([&] { return sys::table.open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) throw IoError(errno, "create", shown);
  WriteFile file(shown, fd);
  const struct statx status = status_of_output(fd, shown);
  if (S_ISDIR(status.stx_mode)) throw IoError(EISDIR, "create", shown);
  if (!S_ISREG(status.stx_mode)) {
    throw IoError(EINVAL, "create", shown, std::nullopt, "it is not a regular file");
  }
  return file;
}

WriteFile::~WriteFile() {
  if (direct_fd_ >= 0) sys::table.close(direct_fd_);
  if (fd_ >= 0) sys::table.close(fd_);
}

void WriteFile::fail(int err, const char* op, std::optional<std::uint64_t> offset_bytes) const {
  throw IoError(err, op, shown_, offset_bytes, hint_for(err, shown_));
}

FileLock WriteFile::lock() {
  if (uninterrupted([&] { return sys::table.flock(fd_, LOCK_EX | LOCK_NB); }) == 0)
    return FileLock::taken;
  if (errno == EWOULDBLOCK) return FileLock::held_by_another;
  if (!unsupported(errno)) fail(errno, "lock");
  return FileLock::unsupported;
}

FileLock WriteFile::lock_byte(std::uint64_t offset_bytes) {
  const auto offset = static_cast<off_t>(offset_bytes);
  if (uninterrupted([&] { return sys::table.lock_byte(fd_, offset, F_WRLCK); }) == 0)
    return FileLock::taken;
  if (errno == EAGAIN || errno == EACCES) return FileLock::held_by_another;
  if (!unsupported(errno)) fail(errno, "lock", offset_bytes);
  return FileLock::unsupported;
}

void WriteFile::unlock_byte(std::uint64_t offset_bytes) noexcept {
  (void)sys::table.lock_byte(fd_, static_cast<off_t>(offset_bytes), F_UNLCK);
}

bool WriteFile::is_at(const std::string& name) const {
  struct statx there {};
  const int done = uninterrupted([&] {
    return sys::table.statx(AT_FDCWD, name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO, &there);
  });
  if (done != 0 && errno != ENOENT && errno != ENOTDIR) fail(errno, "statx");
  if (done != 0) return false;
  const struct statx here = status_of_output(fd_, shown_);
  return here.stx_ino == there.stx_ino && here.stx_dev_major == there.stx_dev_major &&
         here.stx_dev_minor == there.stx_dev_minor;
}

std::uint64_t WriteFile::size_bytes() const {
  return status_of_output(fd_, shown_).stx_size;
}

std::uint32_t WriteFile::permissions() const {
  return status_of_output(fd_, shown_).stx_mode & 07777U;
}

void WriteFile::set_permissions(std::uint32_t permissions) {
  if (uninterrupted([&] { return sys::table.fchmod(fd_, permissions); }) != 0) fail(errno, "chmod");
}

void WriteFile::resize(std::uint64_t size_bytes) {
  if (size_bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    fail(EFBIG, "resize", size_bytes);
  const auto size = static_cast<off_t>(size_bytes);
  if (uninterrupted([&] { return sys::table.ftruncate(fd_, size); }) != 0)
    fail(errno, "resize", size_bytes);
}

bool WriteFile::keep_note(const std::string& text) noexcept {
  return uninterrupted([&] {
           return sys::table.fsetxattr(fd_, kNoteName, text.data(), text.size(), 0);
         }) == 0;
}

std::optional<std::string> note_of(const std::string& name) {
  std::array<char, 256> text;
  const ssize_t size = uninterrupted(
      [&] { return sys::table.getxattr(name.c_str(), kNoteName, text.data(), text.size()); });
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

void WriteFile::open_direct(const std::string& name) {
  const int fd = sys::table.open(name.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT | O_NOFOLLOW);
  if (fd < 0) return;
  struct statx twin {};
  const struct statx own = status_of_output(fd_, shown_);
  if (sys::table.statx(fd, "", AT_EMPTY_PATH, STATX_INO, &twin) != 0 ||
      twin.stx_ino != own.stx_ino) {
    sys::table.close(fd);
    return;
  }
  direct_fd_ = fd;
}

void WriteFile::write_all(int fd, std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), kMostPerWrite));
    const ssize_t written = uninterrupted([&] {
      return sys::table.pwrite(fd, bytes.data(), size, static_cast<off_t>(offset_bytes));
    });
    if (written < 0 && errno == EINVAL && fd == direct_fd_) {  // larger blocks, or none
      fd = fd_;
      continue;
    }
    if (written <= 0) fail(written == 0 ? ENOSPC : errno, "write", offset_bytes);
    offset_bytes += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    // The rest of a short direct write may not be aligned any more.
    if (fd == direct_fd_ && written % static_cast<ssize_t>(kBlockBytes) != 0) fd = fd_;
  }
}

std::uint64_t WriteFile::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  if (!fits_inside(offset_bytes, bytes.size(), std::numeric_limits<off_t>::max()))
    fail(EFBIG, "write", offset_bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uint64_t first = round_up(offset_bytes, kBlockBytes);
  const std::uint64_t end = round_down(offset_bytes + bytes.size(), kBlockBytes);
  if (direct_fd_ < 0 || first >= end || (address - offset_bytes) % kBlockBytes != 0) {
    write_all(fd_, offset_bytes, bytes);
    return bytes.size();
  }
  const std::uint64_t head = first - offset_bytes;
  write_all(fd_, offset_bytes, bytes.first(head));
  write_all(direct_fd_, first, bytes.subspan(head, end - first));
  const std::span<const std::byte> tail = bytes.subspan(head + (end - first));
  write_all(fd_, end, tail);
  return head + tail.size();
}

void WriteFile::read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = uninterrupted([&] {
      return sys::table.pread(fd_, out.data(), out.size(), static_cast<off_t>(offset_bytes));
    });
    if (got < 0) fail(errno, "pread", offset_bytes);
    if (got == 0) {
      throw FormatError(shown_ + ": the file ends early, at byte " + std::to_string(offset_bytes));
    }
    offset_bytes += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void WriteFile::read_blocks(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  int fd = direct_fd_ >= 0 ? direct_fd_ : fd_;
  while (!out.empty()) {
    const ssize_t got = uninterrupted([&] {
      return sys::table.pread(fd, out.data(), out.size(), static_cast<off_t>(offset_bytes));
    });
    if (got < 0 && errno == EINVAL && fd == direct_fd_) {  // larger blocks, or none
      fd = fd_;
      continue;
    }
    if (got < 0) fail(errno, "pread", offset_bytes);
    if (got == 0) break;
    offset_bytes += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
    if (got % static_cast<ssize_t>(kBlockBytes) != 0) fd = fd_;  // the rest is not aligned
  }
  std::ranges::fill(out, std::byte{0});
}

void WriteFile::read_ahead(std::uint64_t offset_bytes, std::uint64_t size_bytes) noexcept {
  (void)sys::table.fadvise(fd_, static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes),
                           POSIX_FADV_WILLNEED);
}

void WriteFile::start_write_back(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  const int done = uninterrupted([&] {
    return sys::table.sync_file_range(fd_, static_cast<off_t>(offset_bytes),
                                      static_cast<off_t>(size_bytes), SYNC_FILE_RANGE_WRITE);
  });
  // Where the kernel lacks it, finish_write_back() does all of the work.
  if (done != 0 && !unsupported(errno)) fail(errno, "write", offset_bytes);
}

void WriteFile::finish_write_back(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  const auto offset = static_cast<off_t>(offset_bytes);
  const auto size = static_cast<off_t>(size_bytes);
  constexpr unsigned kAll =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  int done = uninterrupted([&] { return sys::table.sync_file_range(fd_, offset, size, kAll); });
  if (done != 0 && unsupported(errno))
    done = uninterrupted([&] { return sys::table.fdatasync(fd_); });
  if (done != 0) fail(errno, "write", offset_bytes);
  (void)sys::table.fadvise(fd_, offset, size, POSIX_FADV_DONTNEED);  // only a hint
}

void WriteFile::sync() {
  if (uninterrupted([&] { return sys::table.fsync(fd_); }) != 0) fail(errno, "fsync");
}

void rename_file(const WriteFile& file, const std::string& from, const std::string& to,
                 const std::string& shown) {
  bool interrupted = false;
  while (sys::table.rename(from.c_str(), to.c_str()) != 0) {
    const int err = errno;
    // A network file system may report EINTR for a rename that it has carried out.
    if (err == ENOENT && interrupted && file.is_at(to)) return;
    if (err != EINTR) throw IoError(err, "rename", shown, std::nullopt, hint_for(err, shown));
    interrupted = true;
  }
}

int remove_file(const std::string& name) noexcept {
  if (uninterrupted([&] { return sys::table.unlink(name.c_str()); }) == 0) return 0;
  return errno == ENOENT ? 0 : errno;
}

int move_file(const std::string& from, const std::string& to) noexcept {
  return uninterrupted([&] { return sys::table.rename(from.c_str(), to.c_str()); }) == 0 ? 0
                                                                                         : errno;
}

int link_file(const std::string& from, const std::string& to) noexcept {
  return uninterrupted([&] { return sys::table.link(from.c_str(), to.c_str()); }) == 0 ? 0 : errno;
}

void sync_folder_of(const std::string& path, const std::string& shown) {
  const std::string folder = folder_of(path);
  const int fd = uninterrupted(
      [&] { return sys::table.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0 && errno == EACCES) return;  // one may write into a folder without reading it
  if (fd < 0) throw IoError(errno, "open", folder);
  const int done = uninterrupted([&] { return sys::table.fsync(fd); });
  const int err = errno;
  sys::table.close(fd);
  // Some network file systems have no such call: there a rename is durable by itself, or never.
  if (done != 0 && !unsupported(err)) throw IoError(err, "fsync", shown);
}

}  // namespace lowtide
