#include "system/mount.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lowtide/error.h"
#include "os/sys.h"

namespace lowtide {
namespace {

// Linux 5.8; older headers have neither the bit nor the field, so it is read by position.
constexpr unsigned kStatxMount = 0x1000;
constexpr std::size_t kMountAt = 0x90;

constexpr std::array<std::pair<std::uint32_t, const char*>, 24> kMagics{{
    {0xEF53, "ext4"},          {0x58465342, "xfs"},      {0x9123683E, "btrfs"},
    {0xF2F52010, "f2fs"},      {0xCA451A4E, "bcachefs"}, {0x2FC12FC1, "zfs"},
    {0x794C7630, "overlay"},   {0x01021994, "tmpfs"},    {0x858458F6, "ramfs"},
    {0x958458F6, "hugetlbfs"}, {0x6969, "nfs"},          {0xFF534D42, "cifs"},
    {0xFE534D42, "smb3"},      {0x00C36400, "ceph"},     {0x0BD00BD0, "lustre"},
    {0x19830326, "beegfs"},    {0x47504653, "gpfs"},     {0x65735546, "fuse"},
    {0x01021997, "9p"},        {0x6A656A63, "virtiofs"}, {0x73717368, "squashfs"},
    {0xE0F5E1E2, "erofs"},     {0x4D44, "vfat"},         {0x2011BAB0, "exfat"},
}};

// mountinfo escapes space, tab, newline and backslash as a backslash and three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  const auto octal = [text](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string name_of_magic(std::uint32_t magic) {
  for (const auto& [known, name] : kMagics) {
    if (known == magic) return name;
  }
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", magic);
  return text;
}

std::optional<std::string> type_by_magic(int fd) {
  struct statfs status {};
  if (sys::table.fstatfs(fd, &status) != 0) return std::nullopt;
  return name_of_magic(static_cast<std::uint32_t>(status.f_type));
}

// What the kernel reports about an open path.
struct FileOrigin {
  std::string device;
  std::optional<std::uint64_t> mount;
};
std::optional<FileOrigin> origin_of(int fd) {
  struct statx status {};
  if (sys::table.statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | kStatxMount, &status) != 0) {
    return std::nullopt;
  }
  FileOrigin origin;
  origin.device = std::to_string(status.stx_dev_major) + ":" + std::to_string(status.stx_dev_minor);
  if ((status.stx_mask & kStatxMount) != 0) {
    std::uint64_t id = 0;
    std::memcpy(&id, reinterpret_cast<const char*>(&status) + kMountAt, sizeof id);
    origin.mount = id;
  }
  return origin;
}

std::optional<Mount> mount_of(const FileOrigin& origin, const SystemRoot& root) {
  const std::optional<std::string> text = read_text(root.proc + "/self/mountinfo");
  if (!text) return std::nullopt;
  std::optional<Mount> found;
  for (Mount& mount : parse_mounts(*text)) {
    if (origin.mount ? mount.id == *origin.mount : mount.device == origin.device) {
      found = std::move(mount);  // without an id: the last one mounted wins
    }
  }
  return found;
}

FileSystem describe(int fd, const SystemRoot& root) {
  FileSystem system;
  if (const std::optional<FileOrigin> origin = origin_of(fd)) {
    system.device = origin->device;
    if (const std::optional<Mount> mount = mount_of(*origin, root)) {
      system.type = mount->type;
      system.point = mount->point;
      system.source = mount->source;
    }
  }
  if (system.type.empty()) system.type = type_by_magic(fd).value_or("");
  return system;
}

}  // namespace

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  // "36 25 0:31 /root /point opts [tags...] - type source super-options"
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 2) continue;
    Mount mount;
    mount.id = leading_number(fields[0]).value_or(0);
    mount.device = fields[2];
    mount.root = unescape(fields[3]);
    mount.point = unescape(fields[4]);
    mount.type = dash[1];
    if (fields.end() - dash > 2) mount.source = unescape(dash[2]);
    if (fields.end() - dash > 3) mount.options = fields.back();
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<FileSystem> file_system_of(const std::string& path, const SystemRoot& root) {
  const int fd = sys::table.open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw IoError(errno, "open", path);
    return std::nullopt;
  }
  FileSystem system = describe(fd, root);
  sys::table.close(fd);
  if (system.type.empty()) return std::nullopt;
  return system;
}

}  // namespace lowtide
