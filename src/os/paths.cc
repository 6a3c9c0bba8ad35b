#include "os/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {
namespace {

// Flags of renameat2; not every C library has their names.
constexpr unsigned kNoReplace = 1;
constexpr unsigned kExchange = 2;

struct UnreadableFolder {
  std::string path;
  int err = 0;
};
thread_local UnreadableFolder unreadable;  // glob(3) does not pass user data to its callback

// A missing folder has no matches, but an unreadable one could hide some.
int note_unreadable(const char* path, int err) {
  if (err == ENOENT || err == ENOTDIR) return 0;
  unreadable = {path, err};
  return 1;
}

struct Matches {
  glob_t found{};
  ~Matches() { ::globfree(&found); }
};

template <typename Call>
int repeated(Call call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  Matches matches;
  unreadable = {};
  // Sorted below: glob sorts by locale, and the order of shards must not depend on it.
  const int done =
      ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_NOESCAPE, note_unreadable, &matches.found);
  if (done == GLOB_ABORTED && unreadable.err != 0) {
    throw IoError(unreadable.err, "opendir", unreadable.path, std::nullopt,
                  "while looking for '" + pattern + "'");
  }
  if (done == GLOB_NOSPACE) throw IoError(ENOMEM, "glob", pattern);
  if (done != 0) {
    throw IoError(ENOENT, "open", pattern, std::nullopt, "no file matches this pattern");
  }
  std::vector<std::string> names(matches.found.gl_pathv,
                                 matches.found.gl_pathv + matches.found.gl_pathc);
  std::sort(names.begin(), names.end());  // std::string compares as unsigned bytes
  return names;
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD | FNM_NOESCAPE) == 0;
}

std::string whole_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.string();
}

bool path_exists(const std::string& path) {
  struct statx status {};
  return repeated(
             [&] { return sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status); }) == 0;
}

bool is_folder(const std::string& path) {
  struct statx status {};
  const int done =
      repeated([&] { return sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status); });
  return done == 0 && S_ISDIR(status.stx_mode);
}

std::vector<std::string> list_folder(const std::string& path) {
  const auto close = [](DIR* folder) { ::closedir(folder); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  if (!folder) throw IoError(errno, "opendir", path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) throw IoError(errno, "readdir", path);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> expand_path(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw IoError(EINVAL, "open", path.substr(0, path.find('\0')), std::nullopt,
                  "the path contains a NUL byte");
  }
  if (path.empty()) throw IoError(ENOENT, "open", path, std::nullopt, "the path is empty");
  struct statx status {};
  if (repeated([&] { return sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status); }) ==
      0) {
    return {path};
  }
  const int err = errno;
  if (path.find_first_of("*?[") != std::string::npos) return matches_of(path);
  throw IoError(err, "open", path);
}

std::optional<PathStamp> stamp_of(const std::string& path) {
  struct statx status {};
  const int done = repeated(
      [&] { return sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &status); });
  if (done != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (done != 0) throw IoError(errno, "statx", path);
  return PathStamp{.folder = S_ISDIR(status.stx_mode),
                   .size_bytes = status.stx_size,
                   .mtime_ns = status.stx_mtime.tv_sec * 1'000'000'000 + status.stx_mtime.tv_nsec,
                   .inode = status.stx_ino};
}

std::uint64_t disk_bytes(const std::string& path) noexcept {
  constexpr std::uint64_t kStatxBlock = 512;
  struct statx status {};
  const int done = repeated([&] {
    return sys::table.statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BLOCKS, &status);
  });
  return done == 0 ? status.stx_blocks * kStatxBlock : 0;
}

std::optional<Space> space_at(const std::string& folder) noexcept {
  const int fd =
      repeated([&] { return sys::table.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return std::nullopt;
  struct statfs known {};
  const int done = repeated([&] { return sys::table.fstatfs(fd, &known); });
  sys::table.close(fd);
  if (done != 0) return std::nullopt;
  const auto unit = static_cast<std::uint64_t>(known.f_bsize);
  return Space{.free_bytes = known.f_bavail * unit, .total_bytes = known.f_blocks * unit};
}

void make_folder(const std::string& path) {
  const int done = repeated([&] { return sys::table.mkdir(path.c_str()); });
  if (done == 0 || (errno == EEXIST && is_folder(path))) return;
  throw IoError(errno, "create", path);
}

void remove_folder(const std::string& path) {
  constexpr int kTries = 10;  // somebody may still add files
  for (int i = 0;; ++i) {
    std::vector<std::string> names;
    try {
      names = list_folder(path);
    } catch (const IoError& error) {
      if (error.err == ENOENT) return;
      throw;
    }
    for (const std::string& name : names) {
      const std::string inside = path + "/" + name;
      const int done = repeated([&] { return sys::table.unlink(inside.c_str()); });
      if (done == 0 || errno == ENOENT) continue;
      // POSIX says EPERM for a folder, Linux EISDIR.
      if (errno != EISDIR && errno != EPERM) throw IoError(errno, "remove", inside);
      remove_folder(inside);
    }
    if (repeated([&] { return sys::table.rmdir(path.c_str()); }) == 0 || errno == ENOENT) return;
    if ((errno != ENOTEMPTY && errno != EEXIST) || i == kTries)
      throw IoError(errno, "remove", path);
  }
}

int move_new(const std::string& from, const std::string& to) noexcept {
  const int done =
      repeated([&] { return sys::table.rename_how(from.c_str(), to.c_str(), kNoReplace); });
  if (done == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  struct statx status {};
  if (sys::table.statx(AT_FDCWD, to.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) == 0)
    return EEXIST;
  return repeated([&] { return sys::table.rename(from.c_str(), to.c_str()); }) == 0 ? 0 : errno;
}

int exchange_names(const std::string& one, const std::string& other) noexcept {
  const int done =
      repeated([&] { return sys::table.rename_how(one.c_str(), other.c_str(), kExchange); });
  if (done == 0) return 0;
  return errno == ENOSYS ? EINVAL : errno;
}

}  // namespace lowtide
