// device.h - the block device of a file system, as /sys describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "system/mount.h"
#include "system/text_file.h"

namespace lowtide {

// A value that /sys does not report is nullopt or empty.
struct Device {
  std::string number;  // "254:0"
  std::string name;    // "nvme0n1p2"
  // How much the kernel reads ahead on a page fault, and where that is set.
  std::optional<std::uint64_t> read_ahead_bytes;
  std::string read_ahead_source;
  std::optional<bool> rotational;
  std::string scheduler;  // the one in use: "none", "mq-deadline"
};

// A partition reports the queue of its disk. A file system without a device number of its own
// (btrfs) is followed to the mounted block device; a network file system has only read-ahead. Never
// throws: an unknown device has a number and nothing else.
[[nodiscard]] Device device_of(const FileSystem& system, const SystemRoot& root = {});

}  // namespace lowtide
