#include "system/maps.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/residency.h"
#include "os/sys.h"
#include "system/process.h"

namespace lowtide {
namespace {

// Removes and returns the next word, with the blanks before it.
std::string_view take_word(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(' '), line->size()));
  const std::string_view word = line->substr(0, line->find(' '));
  line->remove_prefix(word.size());
  return word;
}

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (err != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The kernel writes a newline in a name as \012, and escapes nothing else.
std::string plain_path(std::string_view text) {
  std::string path(text);
  for (std::size_t at = 0; (at = path.find("\\012", at)) != std::string::npos; ++at) {
    path.replace(at, 4, "\n");
  }
  return path;
}

// "7f12-7f34 r--s 00000000 fd:01 123   /path"; nullopt for any other line.
std::optional<FileMap> parse_head(std::string_view line) {
  FileMap map;
  const std::string_view range = take_word(&line);
  if (range.find('-') == std::string_view::npos) return std::nullopt;
  (void)take_word(&line);
  (void)take_word(&line);
  const std::string_view device = take_word(&line);
  const std::optional<std::uint64_t> inode = leading_number(take_word(&line));
  const std::size_t colon = device.find(':');
  if (colon == std::string_view::npos || !inode) return std::nullopt;
  const auto major = hex(device.substr(0, colon)), minor = hex(device.substr(colon + 1));
  if (!major || !minor) return std::nullopt;
  map.range = range;
  map.device = makedev(static_cast<unsigned>(*major), static_cast<unsigned>(*minor));
  map.inode = *inode;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::string_view kDeleted = " (deleted)";
  map.deleted = line.ends_with(kDeleted);
  if (map.deleted) line.remove_suffix(kDeleted.size());
  map.path = plain_path(line);
  return map;
}

bool is_file(const FileMap& map) {
  if (map.inode == 0 || !map.path.starts_with('/')) return false;
  for (const char* const memory : {"/memfd:", "/SYSV", "/dev/", "/anon_hugepage", "/i915"}) {
    if (map.path.starts_with(memory)) return false;
  }
  return true;
}

// Collects the lines below one head.
struct Open {
  std::optional<FileMap> map;
  std::uint64_t rss = 0, pss = 0, anonymous = 0;

  void close(ProcessMaps* out) {
    if (!map) return;
    out->pss += pss;
    if (is_file(*map)) {
      map->mapped = rss - std::min(rss, anonymous);
      map->pss = std::min(pss - std::min(pss, anonymous), map->mapped);
      out->files.push_back(std::move(*map));
    }
    *this = {};
  }
  void see(std::string_view line) {
    const auto take = [&line](std::string_view key, std::uint64_t* into) {
      if (line.starts_with(key)) {
        *into = leading_number(line.substr(key.size())).value_or(0) * 1024;
      }
    };
    // With their colons: "Pss:" is not "Pss_Dirty:".
    take("Rss:", &rss);
    take("Pss:", &pss);
    take("Anonymous:", &anonymous);
  }
};

bool is_on_tmpfs(const File& file) {
  struct statfs system {};
  return ::fstatfs(file.fd(), &system) == 0 && system.f_type == TMPFS_MAGIC;
}

Known<FileState> state_of(const std::string& path) {
  struct statx now {};
  FileState state;
  try {
    const File file(path);
    if (sys::table.statx(file.fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &now) != 0) {
      return Known<FileState>::unknown("statx: " + std::generic_category().message(errno));
    }
    state.device = makedev(now.stx_dev_major, now.stx_dev_minor);
    state.inode = now.stx_ino;
    state.size = file.shard().size_bytes;
    state.in_memory = is_on_tmpfs(file);
    std::string why;
    const std::optional<Residency> cached = residency(file, 0, 0, &why);
    state.cached = cached ? Figure::known(cached->cached_bytes) : Figure::unknown(why);
  } catch (const IoError& error) {
    return Known<FileState>::unknown(error.op + ": " + std::generic_category().message(error.err));
  }
  return Known<FileState>::known(std::move(state));
}

// btrfs and overlayfs report one device in smaps and another in stat, both with major number 0.
bool is_same(const FileState& state, const FileMap& map) {
  return state.inode == map.inode &&
         (state.device == map.device || (major(static_cast<dev_t>(state.device)) == 0 &&
                                         major(static_cast<dev_t>(map.device)) == 0));
}

}  // namespace

ProcessMaps parse_smaps(std::string_view text, int pid) {
  ProcessMaps maps;
  Open open;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool may_be_head = !line.empty() && (line[0] < 'A' || line[0] > 'Z');
    if (std::optional<FileMap> head = may_be_head ? parse_head(line) : std::nullopt) {
      open.close(&maps);
      open.map = std::move(head);
      open.map->pid = pid;
    } else {
      open.see(line);
    }
  }
  open.close(&maps);
  return maps;
}

Known<ProcessMaps> read_maps(const SystemRoot& root, int pid) {
  int err = 0;
  const std::string path = root.proc + "/" + std::to_string(pid) + "/smaps";
  const std::optional<std::string> text = read_text(path, &err);
  if (!text) return Known<ProcessMaps>::unknown(proc_reason(root, pid, "smaps", err));
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // read_text reads no more
  if (text->size() >= kMostBytes) {
    return Known<ProcessMaps>::unknown(
        "/proc/PID/smaps exceeds 16 MiB: the process has too many mappings");
  }
  return Known<ProcessMaps>::known(parse_smaps(*text, pid));
}

Known<FileState> file_state(const std::string& path) {
  return state_of(path);
}

Known<FileState> file_state(const SystemRoot& root, const FileMap& map) {
  const std::string process = root.proc + "/" + std::to_string(map.pid);
  std::string why = "the file was deleted";
  if (!map.deleted) {
    // The process may be in another mount namespace; its root requires permission to trace it.
    for (const std::string& path : {process + "/root" + map.path, map.path}) {
      Known<FileState> state = state_of(path);
      if (state && is_same(*state, map)) return state;
      why = state ? "its path now names another file" : state.why;
    }
  }
  Known<FileState> state = state_of(process + "/map_files/" + map.range);
  if (state && is_same(*state, map)) return state;
  return Known<FileState>::unknown(why);
}

}  // namespace lowtide
