#include "os/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "core/checked.h"
#include "core/hash.h"
#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {
namespace {

constexpr int kDirectUnknown = -2;
constexpr std::uint64_t kMostPerCall = 1ULL << 30;  // Linux itself stops 4 KiB short of 2 GiB
constexpr unsigned kAgainLimit = 1000;

// Linux 6.1; older headers have neither the bit nor the fields, so they are read by position.
constexpr unsigned kStatxDirectAlignment = 0x2000;
constexpr std::size_t kMemoryAlignPlace = 0x98;
constexpr std::size_t kOffsetAlignPlace = 0x9c;
static_assert(sizeof(struct statx) == 256);

const char* kind_of(const struct statx& status) {
  switch (status.stx_mode & S_IFMT) {
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
      return "a character device";
    case S_IFBLK:
      return "a block device";
    default:
      return "of an unknown kind";
  }
}

void require_regular(const struct statx& status, const std::string& path) {
  if (S_ISREG(status.stx_mode)) return;
  if (S_ISDIR(status.stx_mode)) {
    const std::string inside = path.ends_with('/') ? path : path + "/";
    throw IoError(EISDIR, "open", path, std::nullopt,
                  "name the files in it, such as '" + inside + "*.npy'");
  }
  throw IoError(EINVAL, "open", path, std::nullopt,
                std::string("it is ") + kind_of(status) + ", not a regular file");
}

std::string open_hint(int err) {
  if (err == EMFILE) return "this process has too many open files; raise the limit (ulimit -n)";
  return "";
}

struct statx status_of(int fd, const std::string& path) {
  struct statx status {};
  constexpr unsigned kMask = STATX_BASIC_STATS | kStatxDirectAlignment;
  while (sys::table.statx(fd, "", AT_EMPTY_PATH, kMask, &status) != 0) {
    if (errno != EINTR) throw IoError(errno, "statx", path);
  }
  return status;
}

std::uint64_t device_of(const struct statx& status) {
  return (std::uint64_t{status.stx_dev_major} << 32) | status.stx_dev_minor;
}

Shard shard_of(const struct statx& status, const std::string& path) {
  std::uint64_t version = hash_with(0, device_of(status));
  version = hash_with(version, status.stx_ino);
  version = hash_with(version, status.stx_size);
  version = hash_with(version, static_cast<std::uint64_t>(status.stx_mtime.tv_sec));
  version = hash_with(version, status.stx_mtime.tv_nsec);
  return {path, status.stx_size, version};
}

bool is_power_of_two(std::uint32_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

std::optional<DirectAlignment> alignment_of(const struct statx& status) {
  if ((status.stx_mask & kStatxDirectAlignment) == 0) return DirectAlignment{};
  DirectAlignment told;
  const char* const raw = reinterpret_cast<const char*>(&status);
  std::memcpy(&told.memory_bytes, raw + kMemoryAlignPlace, sizeof told.memory_bytes);
  std::memcpy(&told.offset_bytes, raw + kOffsetAlignPlace, sizeof told.offset_bytes);
  if (told.offset_bytes == 0) return std::nullopt;
  if (!is_power_of_two(told.memory_bytes) || !is_power_of_two(told.offset_bytes))
    return DirectAlignment{};
  return told;
}

// One pread with its retries. EAGAIN on a regular file is temporary (a lease, or a FUSE server
// short of memory), but a permanent one must not hang us.
ssize_t read_some(int fd, std::byte* into, std::uint64_t size_bytes, std::uint64_t offset_bytes) {
  const auto size = static_cast<std::size_t>(std::min(size_bytes, kMostPerCall));
  for (unsigned again = 0;;) {
    const ssize_t got = sys::table.pread(fd, into, size, static_cast<off_t>(offset_bytes));
    if (got >= 0 || (errno != EINTR && errno != EAGAIN)) return got;
    if (errno == EAGAIN) {
      if (++again > kAgainLimit) {
        errno = EAGAIN;
        return -1;
      }
      std::this_thread::yield();
    }
  }
}

// Reads until everything is there, the file ends or an error occurs; or, with `alignment_bytes`
// above 1, until a position from which a direct read cannot continue.
ReadResult read_until_end(int fd, std::uint64_t offset_bytes, std::span<std::byte> out,
                          std::uint32_t alignment_bytes) {
  ReadResult result;
  if (!fits_inside(offset_bytes, out.size(), std::numeric_limits<off_t>::max())) {
    return {0, EOVERFLOW};
  }
  while (result.placed_bytes < out.size()) {
    const ssize_t got =
        read_some(fd, out.data() + result.placed_bytes, out.size() - result.placed_bytes,
                  offset_bytes + result.placed_bytes);
    if (got < 0) {
      result.err = errno;
      return result;
    }
    if (got == 0) return result;
    result.placed_bytes += static_cast<std::uint64_t>(got);
    if (result.placed_bytes % alignment_bytes != 0) return result;
  }
  return result;
}

}  // namespace

File::File(const std::string& path) : shard_{path, 0, 0}, direct_fd_(kDirectUnknown) {
  open_buffered();
}

File::File(const Shard& expected) : shard_{expected.path, 0, 0}, direct_fd_(kDirectUnknown) {
  open_buffered();
  const bool same = shard_.version == expected.version || expected.version == kAnyVersion;
  if (same && shard_.size_bytes == expected.size_bytes) return;
  sys::table.close(fd_);  // the destructor does not run after a throw
  throw IoError(ESTALE, "open", expected.path, std::nullopt,
                "the file was replaced or rewritten since it was first opened (then " +
                    std::to_string(expected.size_bytes) + " bytes, now " +
                    std::to_string(shard_.size_bytes) + ")");
}

File::~File() {
  if (fd_ >= 0) sys::table.close(fd_);
  const int direct = direct_fd_.load(std::memory_order_acquire);
  if (direct >= 0) sys::table.close(direct);
}

void File::open_buffered() {
  const std::string& path = shard_.path;
  if (path.find('\0') != std::string::npos) {
    throw IoError(EINVAL, "open", path.substr(0, path.find('\0')), std::nullopt,
                  "the path contains a NUL byte");
  }
  int fd = -1;
  do {
    fd = sys::table.open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    const int err = errno;
    struct statx status {};
    if (err == ENXIO && sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) == 0) {
      require_regular(status, path);
    }
    throw IoError(err, "open", path, std::nullopt, open_hint(err));
  }
  try {
    const struct statx status = status_of(fd, path);
    require_regular(status, path);
    identity_ = {device_of(status), status.stx_ino};
    direct_alignment_ = alignment_of(status);
    shard_ = shard_of(status, path);
  } catch (...) {
    sys::table.close(fd);
    throw;
  }
  // Without access times a cached read costs a tenth less; only the owner may disable them. One
  // access is recorded first, by a read at the end, which needs no disk: some tools delete files
  // that look unused.
  std::byte none;
  (void)sys::table.pread(fd, &none, 1, static_cast<off_t>(shard_.size_bytes));
  // With O_NONBLOCK, io_uring would fail with EAGAIN instead of waiting (FUSE, some network file
  // systems).
  const int flags = ::fcntl(fd, F_GETFL) & ~O_NONBLOCK;
  if (::fcntl(fd, F_SETFL, flags | O_NOATIME) != 0) ::fcntl(fd, F_SETFL, flags);
  fd_ = fd;
}

File::File(const File& original, int fd)
    : shard_(original.shard_),
      identity_(original.identity_),
      direct_alignment_(original.direct_alignment_),
      fd_(fd),
      direct_fd_(kDirectUnknown) {}

std::shared_ptr<File> File::again() const {
  const std::string link = "/proc/self/fd/" + std::to_string(fd_);
  const int no_atime = ::fcntl(fd_, F_GETFL) & O_NOATIME;
  const int fd = sys::table.open(link.c_str(), O_RDONLY | O_CLOEXEC | no_atime);
  return fd < 0 ? nullptr : std::shared_ptr<File>(new File(*this, fd));
}

int File::direct_fd() const {
  const int known = direct_fd_.load(std::memory_order_acquire);
  if (known != kDirectUnknown) return known;
  const MutexLock lock(direct_mutex_);
  if (direct_fd_.load(std::memory_order_relaxed) == kDirectUnknown) {
    direct_fd_.store(direct_alignment_ ? open_direct() : -1, std::memory_order_release);
  }
  return std::max(direct_fd_.load(std::memory_order_relaxed), -1);
}

int File::open_direct() const {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT;
  // A lack of descriptors or memory is temporary and not the file system's answer: retry later.
  const auto refused = [](int err) {
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == EINTR ? kDirectUnknown : -1;
  };
  char link[32];  // not a std::string: read_direct must not throw
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd_);
  int fd = sys::table.open(link, kFlags & ~O_NONBLOCK);
  if (fd >= 0) return fd;
  if (errno == EINVAL || refused(errno) == kDirectUnknown) return refused(errno);

  fd = sys::table.open(shard_.path.c_str(), kFlags);
  if (fd < 0) return refused(errno);
  struct statx status {};
  if (sys::table.statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) != 0 ||
      device_of(status) != identity_.device || status.stx_ino != identity_.inode) {
    sys::table.close(fd);
    return -1;
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Shard File::stat_now() const {
  return shard_of(status_of(fd_, shard_.path), shard_.path);
}

void File::read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  const ReadResult result = read(offset_bytes, out);
  if (result.err != 0) {
    throw IoError(result.err, "pread", shard_.path, offset_bytes + result.placed_bytes);
  }
  if (result.placed_bytes != out.size()) {
    throw FormatError(shard_.path + ": the file ends early: expected " +
                      std::to_string(out.size()) + " bytes at byte " +
                      std::to_string(offset_bytes) + ", found " +
                      std::to_string(result.placed_bytes));
  }
}

// Probes at the end of the file, where the answer needs no I/O.
bool File::answers_at_once() const noexcept {
  char byte = 0;
  return sys::table.pread_now(fd_, &byte, 1, static_cast<off_t>(shard_.size_bytes)) >= 0;
}

ReadResult File::read(std::uint64_t offset_bytes, std::span<std::byte> out) const noexcept {
  return read_until_end(fd_, offset_bytes, out, 1);
}

ReadResult File::read_direct(std::uint64_t offset_bytes, std::span<std::byte> out) const noexcept {
  const int fd = direct_fd();
  if (fd < 0) return {0, EINVAL};
  ReadResult result = read_until_end(fd, offset_bytes, out, direct_alignment_->offset_bytes);
  const std::uint64_t reached_bytes = offset_bytes + result.placed_bytes;
  if (result.err != 0 || result.placed_bytes == out.size() || reached_bytes >= shard_.size_bytes) {
    return result;
  }
  // Shorter than the known end: the file was truncated, or the kernel stopped at a boundary finer
  // than the alignment that we use. The buffered descriptor shows which.
  const ReadResult rest = read(reached_bytes, out.subspan(result.placed_bytes));
  return {result.placed_bytes + rest.placed_bytes, rest.err};
}

int File::advise(Advice advice, std::uint64_t offset_bytes,
                 std::uint64_t size_bytes) const noexcept {
  int value = POSIX_FADV_NORMAL;
  switch (advice) {
    case Advice::normal:
      break;
    case Advice::random:
      value = POSIX_FADV_RANDOM;
      break;
    case Advice::will_need:
      value = POSIX_FADV_WILLNEED;
      break;
    case Advice::dont_need:
      value = POSIX_FADV_DONTNEED;
      break;
  }
  const int done = sys::table.fadvise(fd_, static_cast<off_t>(offset_bytes),
                                      static_cast<off_t>(size_bytes), value);
  return done == 0 ? 0 : errno;
}

}  // namespace lowtide
