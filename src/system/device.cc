#include "system/device.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string_view>

#include "core/checked.h"
#include "os/sys.h"

namespace lowtide {
namespace {

// The word in brackets: "none" in "mq-deadline [none] kyber".
std::string chosen_word(std::string_view text) {
  const std::size_t first = text.find('[');
  const std::size_t end = text.find(']');
  if (first == std::string_view::npos || end == std::string_view::npos || end < first) return "";
  return std::string(text.substr(first + 1, end - first - 1));
}

std::string device_name(const std::string& folder) {
  constexpr std::string_view kKey = "DEVNAME=";
  const std::optional<std::string> text = read_text(folder + "/uevent");
  if (!text) return "";
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with(kKey)) return std::string(line.substr(kKey.size()));
  }
  return "";
}

// The number of the block device that a path names; empty if it names none.
std::string block_number(const std::string& path) {
  struct statx status {};
  if (!path.starts_with('/') ||
      sys::table.statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) != 0 ||
      !S_ISBLK(status.stx_mode)) {
    return "";
  }
  return std::to_string(status.stx_rdev_major) + ":" + std::to_string(status.stx_rdev_minor);
}

void read_ahead(Device* device, const std::string& path) {
  std::uint64_t bytes = 0;
  const std::optional<std::uint64_t> kib = number_in(path);
  if (device->read_ahead_bytes || !kib || !checked_mul(*kib, 1024, &bytes)) return;
  device->read_ahead_bytes = bytes;
  device->read_ahead_source = path;
}

}  // namespace

Device device_of(const FileSystem& system, const SystemRoot& root) {
  Device device;
  device.number = system.device;
  // The file system's own setting comes first: btrfs has one in addition to its disk's.
  read_ahead(&device, root.sys + "/class/bdi/" + system.device + "/read_ahead_kb");
  if (system.device.starts_with("0:")) {
    const std::string below = block_number(system.source);
    if (below.empty()) return device;
    device.number = below;
  }
  const std::string folder = root.sys + "/dev/block/" + device.number;
  device.name = device_name(folder);
  // A partition has no queue; that of its disk is one folder up.
  for (const std::string& queue : {folder + "/queue", folder + "/../queue"}) {
    if (const auto rotates = number_in(queue + "/rotational"); rotates && !device.rotational) {
      device.rotational = *rotates != 0;
    }
    if (const auto text = read_text(queue + "/scheduler"); text && device.scheduler.empty()) {
      device.scheduler = chosen_word(*text);
      if (device.scheduler.empty() && text->starts_with("none")) device.scheduler = "none";
    }
    read_ahead(&device, queue + "/read_ahead_kb");
  }
  return device;
}

}  // namespace lowtide
