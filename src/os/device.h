// device.h - the block device behind a file system, as /sys tells of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/limits.h"
#include "os/mount.h"

namespace lowtide {

// What /sys does not tell is nullopt or empty.
struct Device {
  std::string number;  // "254:0"
  std::string name;    // "nvme0n1p2"
  // How far the kernel reads ahead of a page fault, and where that is set.
  std::optional<std::uint64_t> read_ahead_bytes;
  std::string read_ahead_source;
  std::optional<bool> rotational;
  std::string scheduler;  // the one in use: "none", "mq-deadline"
};

// A partition answers with the queue of its disk. A file system without a device number of its own
// (btrfs) is followed to the block device that was mounted; a network file system has read-ahead
// only. Never throws: a device that nobody knows has a number and nothing else.
[[nodiscard]] Device device_of(const FileSystem& system, const SystemRoot& root = {});

}  // namespace lowtide
