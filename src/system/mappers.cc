#include "system/mappers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/sys.h"
#include "system/process.h"

namespace lowtide {
namespace {

// Identifies a file in a line of maps: "7f..-7f.. r--s 00000000 fe:01 1234   /path".
struct Wanted {
  std::string device;  // "fe:01"
  std::string inode;
  std::string path;
};

std::optional<Wanted> wanted(const File& file) {
  struct statx status {};
  if (sys::table.statx(file.fd(), "", AT_EMPTY_PATH, STATX_INO, &status) != 0) return std::nullopt;
  char device[32];
  std::snprintf(device, sizeof(device), "%02x:%02x", status.stx_dev_major, status.stx_dev_minor);
  std::error_code unknown;
  const auto whole = std::filesystem::canonical(file.shard().path, unknown);
  return Wanted{device, std::to_string(status.stx_ino), unknown ? "" : whole.string()};
}

bool is_map_of(std::string_view line, const Wanted& wanted) {
  std::vector<std::string_view> fields;
  std::size_t at = 0;
  while (fields.size() < 5) {
    const std::size_t begin = line.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) return false;
    at = std::min(line.find(' ', begin), line.size());
    fields.push_back(line.substr(begin, at - begin));
  }
  if (fields[4] != wanted.inode) return false;
  if (fields[3] == wanted.device) return true;
  const std::size_t begin = line.find_first_not_of(' ', at);
  return begin != std::string_view::npos && !wanted.path.empty() &&
         line.substr(begin) == wanted.path;
}

bool maps_file(std::string_view maps, const Wanted& wanted) {
  const auto lines = split(maps, '\n');
  return std::ranges::any_of(lines, [&](auto line) { return is_map_of(line, wanted); });
}

// The flags of a map follow its line in smaps; "lo" means locked.
bool locks_file(std::string_view smaps, const Wanted& wanted) {
  bool inside = false;
  for (const std::string_view line : split(smaps, '\n')) {
    const bool is_field = line.front() >= 'A' && line.front() <= 'Z';
    if (!is_field) inside = is_map_of(line, wanted);
    if (inside && line.starts_with("VmFlags:") && line.find(" lo") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

Mappers mappers_of(const File& file, const SystemRoot& root) {
  Mappers mappers;
  const std::optional<Wanted> file_wanted = wanted(file);
  if (!file_wanted) return mappers;
  for (const int pid : list_processes(root)) {
    const std::string process = root.proc + "/" + std::to_string(pid);
    const std::optional<std::string> maps = read_text(process + "/maps");
    if (!maps) {
      mappers.hidden += path_exists(process) ? 1 : 0;  // otherwise it has ended
    } else if (maps_file(*maps, *file_wanted)) {
      const std::string smaps = read_text(process + "/smaps").value_or("");
      const auto stat = read_stat(root, pid);
      mappers.found.push_back(
          {pid, stat ? stat->name : std::string(), locks_file(smaps, *file_wanted)});
    }
  }
  return mappers;
}

}  // namespace lowtide
