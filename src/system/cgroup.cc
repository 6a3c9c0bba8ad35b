#include "system/cgroup.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "system/mount.h"

namespace lowtide {
namespace {

// v1 reports "no limit" as the largest multiple of the page size below 2^63.
constexpr std::uint64_t kNoLimit = 1ULL << 60;

struct Version {
  std::array<const char*, 2> limits;  // the second may be null
  const char* usage;
  const char* inactive;  // in memory.stat, including all groups below
};
constexpr Version kV1{
    {"memory.limit_in_bytes", nullptr}, "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kV2{{"memory.max", "memory.high"}, "memory.current", "inactive_file"};

struct GroupMount {
  bool v2 = false;
  std::string root;   // the group that is visible at `point`
  std::string point;  // the mount point, with the system root prepended
};

bool contains(const std::vector<std::string_view>& parts, std::string_view wanted) {
  return std::find(parts.begin(), parts.end(), wanted) != parts.end();
}

// Whether `inner` is `outer` or is below it, comparing whole names.
bool is_below(std::string_view inner, std::string_view outer) {
  if (outer == "/") return inner.starts_with('/');
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
}

std::string placed(const std::string& point, const SystemRoot& root) {
  constexpr std::string_view kUsual = "/sys/fs/cgroup";
  return is_below(point, kUsual) ? root.cgroup + point.substr(kUsual.size()) : point;
}

std::vector<GroupMount> memory_mounts(std::string_view mountinfo, const SystemRoot& root) {
  std::vector<GroupMount> mounts;
  for (const auto& mount : parse_mounts(mountinfo)) {
    const bool v2 = mount.type == "cgroup2";
    const bool v1 = mount.type == "cgroup" && contains(split(mount.options, ','), "memory");
    if (v1 || v2) mounts.push_back({v2, mount.root, placed(mount.point, root)});
  }
  return mounts;
}

// The path in a line "id:controllers:path" that lists the memory controller (v1) or none (v2).
std::optional<std::string> own_group(std::string_view lines, bool v2) {
  for (const std::string_view line : split(lines, '\n')) {
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = v2 ? line.substr(0, first) == "0" && controllers.empty()
                           : contains(split(controllers, ','), "memory");
    if (wanted) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// The path from the mount down to our group; nullopt if the mount does not show it: its root is
// another group, or the group is outside our namespace ("/../x").
std::optional<std::string> below_mount(const std::string& group, const std::string& root) {
  if (!is_below(group, root) || contains(split(group, '/'), "..")) return std::nullopt;
  const std::string below = root == "/" ? group : group.substr(root.size());
  return below == "/" ? "" : below;
}

// Where the group of a process is visible.
struct GroupPath {
  GroupMount mount;
  std::string below;  // empty: the mount point itself

  [[nodiscard]] std::string folder() const { return mount.point + below; }
};

std::optional<GroupPath> find_group(const std::vector<GroupMount>& mounts, std::string_view groups,
                                    bool v2) {
  const std::optional<std::string> group = own_group(groups, v2);
  if (!group) return std::nullopt;
  std::optional<GroupPath> found;
  for (const GroupMount& mount : mounts) {
    if (mount.v2 != v2) continue;
    if (const std::optional<std::string> way = below_mount(*group, mount.root)) {
      return GroupPath{mount, *way};
    }
    if (!found) found = GroupPath{mount, ""};  // the mount's own limit is better than none
  }
  return found;
}

std::uint64_t room_in(const std::string& folder, const Version& version, std::uint64_t limit) {
  const std::optional<std::uint64_t> usage = number_in(folder + "/" + version.usage);
  if (!usage) return limit;
  const std::optional<std::string> stat = read_text(folder + "/memory.stat");
  const std::uint64_t inactive = stat ? number_of(*stat, version.inactive).value_or(0) : 0;
  const std::uint64_t held = *usage - std::min(*usage, inactive);
  return limit - std::min(limit, held);
}

void add_limits(const std::string& folder, const Version& version, std::vector<GroupLimit>* out) {
  for (const char* const name : version.limits) {
    if (name == nullptr) continue;
    const std::string path = folder + "/" + name;
    // "max" is not a number, and 0 cannot apply to a running process.
    const std::uint64_t limit = number_in(path).value_or(0);
    if (limit == 0 || limit >= kNoLimit) continue;
    out->push_back({limit, room_in(folder, version, limit), path});
  }
}

// Our group and all groups above it, up to and including the mount point.
void walk_up(GroupPath path, std::vector<GroupLimit>* out) {
  const Version& version = path.mount.v2 ? kV2 : kV1;
  for (;;) {
    add_limits(path.folder(), version, out);
    if (path.below.empty()) return;
    path.below.resize(std::min(path.below.rfind('/'), path.below.size() - 1));
  }
}

Figure tightest(const GroupPath& path) {
  std::vector<GroupLimit> limits;
  walk_up(path, &limits);
  Figure least = Figure::unknown("no limit");
  for (const GroupLimit& limit : limits) {
    least = Figure::known(std::min(least.value.value_or(limit.limit_bytes), limit.limit_bytes));
  }
  return least;
}

Figure number_or_why(const std::optional<std::uint64_t>& number, const std::string& file) {
  return number ? Figure::known(*number) : Figure::unknown(file + " does not report it");
}

Figure told_in(const std::string& folder, const char* file, const char* key) {
  const std::optional<std::string> text = read_text(folder + "/" + file);
  return number_or_why(text ? number_of(*text, key) : std::nullopt, file);
}

GroupUsage usage_at(const GroupPath& path) {
  const bool v2 = path.mount.v2;
  const Version& version = v2 ? kV2 : kV1;
  GroupUsage group;
  group.folder = path.folder();
  group.version = v2 ? 2 : 1;
  group.usage = number_or_why(number_in(group.folder + "/" + version.usage), version.usage);
  const std::string stat = read_text(group.folder + "/memory.stat").value_or("");
  const auto counted = [&stat](const char* key) {
    return number_or_why(number_of(stat, key), "memory.stat");
  };
  group.anon = counted(v2 ? "anon" : "total_rss");
  group.inactive_file = counted(version.inactive);
  group.active_file = counted(v2 ? "active_file" : "total_active_file");
  group.limit = tightest(path);
  group.limit_hits =
      v2 ? told_in(group.folder, "memory.events", "max")
         : number_or_why(number_in(group.folder + "/memory.failcnt"), "memory.failcnt");
  group.oom_kills = told_in(group.folder, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
  return group;
}

}  // namespace

std::vector<GroupLimit> group_limits(const SystemRoot& root) {
  std::vector<GroupLimit> limits;
  const std::optional<std::string> groups = read_text(root.proc + "/self/cgroup");
  const std::optional<std::string> mountinfo = read_text(root.proc + "/self/mountinfo");
  if (!groups || !mountinfo) return limits;
  const std::vector<GroupMount> mounts = memory_mounts(*mountinfo, root);
  for (const bool v2 : {false, true}) {
    if (const std::optional<GroupPath> path = find_group(mounts, *groups, v2)) {
      walk_up(*path, &limits);
    }
  }
  return limits;
}

Known<GroupUsage> group_usage(const SystemRoot& root, int pid) {
  const std::string who = pid == 0 ? "self" : std::to_string(pid);
  const std::optional<std::string> groups = read_text(root.proc + "/" + who + "/cgroup");
  // The kernel writes the group's path as our namespace sees it, so our own mounts apply.
  const std::optional<std::string> mountinfo = read_text(root.proc + "/self/mountinfo");
  if (!groups) return Known<GroupUsage>::unknown("/proc/PID/cgroup cannot be read");
  if (!mountinfo) return Known<GroupUsage>::unknown("/proc/self/mountinfo cannot be read");
  const std::vector<GroupMount> mounts = memory_mounts(*mountinfo, root);
  std::optional<GroupUsage> seen;
  for (const bool v2 : {false, true}) {
    const std::optional<GroupPath> path = find_group(mounts, *groups, v2);
    if (!path) continue;
    GroupUsage group = usage_at(*path);
    if (group.usage || group.anon) return Known<GroupUsage>::known(std::move(group));
    if (!seen) seen = std::move(group);
  }
  if (seen) return Known<GroupUsage>::known(std::move(*seen));
  return Known<GroupUsage>::unknown("no memory group is mounted");
}

}  // namespace lowtide
