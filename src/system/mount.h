// mount.h - what is mounted where, and on which file system a path is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/text_file.h"

namespace lowtide {

// One line of mountinfo, names unescaped.
struct Mount {
  std::uint64_t id = 0;
  std::string device;   // "254:0"
  std::string root;     // the part of the file system that is visible at `point`
  std::string point;    // the mount point
  std::string type;     // "ext4", "fuse.sshfs"
  std::string source;   // "/dev/vda", "server:/export"
  std::string options;  // of the file system: "rw,lowerdir=..."
};

// Lines that do not describe a mount are skipped.
[[nodiscard]] std::vector<Mount> parse_mounts(std::string_view mountinfo);

struct FileSystem {
  std::string type;    // "ext4"; "0x1021997" for an unknown magic number
  std::string point;   // where it is mounted; empty: unknown
  std::string source;  // what is mounted; empty: unknown
  std::string device;  // "254:0", from the file itself: btrfs and overlayfs have their own
};

// By the mount that the kernel reports for the path, otherwise by the magic number of statfs(2).
// nullopt: neither works. Throws IoError(ENOENT or ENOTDIR) if the path does not exist.
[[nodiscard]] std::optional<FileSystem> file_system_of(const std::string& path,
                                                       const SystemRoot& root = {});

}  // namespace lowtide
