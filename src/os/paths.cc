#include "os/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {
namespace {

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

std::string whole_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.string();
}

bool path_exists(const std::string& path) {
  struct statx status {};
  return sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) == 0;
}

bool is_folder(const std::string& path) {
  struct statx status {};
  return sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) == 0 &&
         S_ISDIR(status.stx_mode);
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
  if (sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) == 0) return {path};
  const int err = errno;
  if (path.find_first_of("*?[") != std::string::npos) return matches_of(path);
  throw IoError(err, "open", path);
}

}  // namespace lowtide
