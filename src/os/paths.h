// paths.h - turns what a user wrote into the names of files, and makes and removes folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// An existing path stands for itself, whatever characters it contains. Otherwise a text with *, ?
// or [ is a pattern and gives its matches, sorted by bytes. Throws IoError(ENOENT) if nothing
// matches, and for any other path that does not exist.
[[nodiscard]] std::vector<std::string> expand_path(const std::string& path);

// Whether a pattern with *, ? or [ matches a name, as expand_path() matches paths: '/' and a
// leading
// '.' match only themselves.
[[nodiscard]] bool matches_pattern(const std::string& pattern, const std::string& name);

// Absolute, so that it still names the same file after the process changes its folder.
[[nodiscard]] std::string whole_path(const std::string& path);
[[nodiscard]] bool path_exists(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);
// The names in a folder, sorted by bytes, without "." and "..". Throws IoError.
[[nodiscard]] std::vector<std::string> list_folder(const std::string& path);

// What stood under a name at one moment. Unlike a Shard's version, it means the same on every
// machine that sees the file.
struct PathStamp {
  bool folder = false;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t inode = 0;

  [[nodiscard]] bool operator==(const PathStamp& other) const = default;
};
// nullopt if there is nothing. Follows links. Throws IoError.
[[nodiscard]] std::optional<PathStamp> stamp_of(const std::string& path);

// What a file takes on its disk, which is less than its size if it has holes. 0 if there is none.
[[nodiscard]] std::uint64_t disk_bytes(const std::string& path) noexcept;
struct Space {
  std::uint64_t free_bytes = 0;  // for this user
  std::uint64_t total_bytes = 0;
};
// Of the file system that a folder is on; nullopt if it does not say.
[[nodiscard]] std::optional<Space> space_at(const std::string& folder) noexcept;

// One that exists is not an error. Throws IoError.
void make_folder(const std::string& path);
// With all that is in it; links in it are removed, not followed. One that does not exist is not an
// error, and others may remove it or write into it meanwhile. Throws IoError.
void remove_folder(const std::string& path);
// Gives a file or folder another name, which must not exist: EEXIST. Where the file system cannot
// check and rename at once, another program may take the name between the two. Returns 0 or an
// errno.
[[nodiscard]] int move_new(const std::string& from, const std::string& to) noexcept;
// Two files or folders get each other's names, at one moment. Returns 0 or an errno: EINVAL where
// the file system cannot do it.
[[nodiscard]] int exchange_names(const std::string& one, const std::string& other) noexcept;

}  // namespace lowtide
