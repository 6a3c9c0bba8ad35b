// mount.h - what is mounted where, and on which file system a path lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/limits.h"

namespace lowtide {

// One line of mountinfo, names unescaped.
struct Mount {
  std::uint64_t id = 0;
  std::string device;   // "254:0"
  std::string root;     // what of the file system is seen at `point`
  std::string point;    // where
  std::string type;     // "ext4", "fuse.sshfs"
  std::string source;   // "/dev/vda", "server:/export"
  std::string options;  // of the file system: "rw,lowerdir=..."
};

// Lines that are no mount are left out.
[[nodiscard]] std::vector<Mount> parse_mounts(std::string_view mountinfo);

struct FileSystem {
  std::string type;    // "ext4"; "0x1021997" for a magic number that we have no name for
  std::string point;   // where it is mounted; empty: unknown
  std::string source;  // what is mounted; empty: unknown
  std::string device;  // "254:0", as the file itself says: btrfs and overlayfs have their own
};

// By the mount that the kernel names for the path, else by the magic number of statfs(2). nullopt:
// neither can be asked. Throws IoError(ENOENT or ENOTDIR) for a path that is not there.
[[nodiscard]] std::optional<FileSystem> file_system_of(const std::string& path,
                                                       const SystemRoot& root = {});

// Of an open file: its pages belong to a file below, so cachestat on it always says that nothing is
// cached.
[[nodiscard]] bool is_overlay(int fd);

}  // namespace lowtide
