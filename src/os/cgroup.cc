#include "os/cgroup.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "os/mount.h"
#include "os/text_file.h"

namespace lowtide {
namespace {

// v1 says "no limit" with the largest multiple of the page size below 2^63.
constexpr std::uint64_t kNoLimit = 1ULL << 60;

struct Version {
  std::array<const char*, 2> limits;  // the second may be none
  const char* usage;
  const char* inactive;  // in memory.stat, with all groups below
};
constexpr Version kV1{
    {"memory.limit_in_bytes", nullptr}, "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kV2{{"memory.max", "memory.high"}, "memory.current", "inactive_file"};

// Where the groups of one version are seen.
struct View {
  bool v2 = false;
  std::string root;   // the group that is seen at `point`
  std::string point;  // where, with the system root put in
};

bool contains(const std::vector<std::string_view>& parts, std::string_view wanted) {
  return std::find(parts.begin(), parts.end(), wanted) != parts.end();
}

// Whether `inner` is `outer` or lies below it, by whole names.
bool is_below(std::string_view inner, std::string_view outer) {
  if (outer == "/") return inner.starts_with('/');
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
}

std::string placed(const std::string& point, const SystemRoot& root) {
  constexpr std::string_view kUsual = "/sys/fs/cgroup";
  return is_below(point, kUsual) ? root.cgroup + point.substr(kUsual.size()) : point;
}

std::vector<View> memory_views(std::string_view mountinfo, const SystemRoot& root) {
  std::vector<View> views;
  for (const Mount& mount : parse_mounts(mountinfo)) {
    const bool v2 = mount.type == "cgroup2";
    const bool v1 = mount.type == "cgroup" && contains(split(mount.options, ','), "memory");
    if (v1 || v2) views.push_back({v2, mount.root, placed(mount.point, root)});
  }
  return views;
}

// The path in a line "id:controllers:path": with the memory controller for v1, with none for v2.
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

// The way from the mount down to our group; nullopt when the mount does not show it: its root is
// another group, or the group lies outside our namespace ("/../x").
std::optional<std::string> below_mount(const std::string& group, const std::string& root) {
  if (!is_below(group, root) || contains(split(group, '/'), "..")) return std::nullopt;
  const std::string below = root == "/" ? group : group.substr(root.size());
  return below == "/" ? "" : below;
}

std::uint64_t room_in(const std::string& folder, const Version& version, std::uint64_t limit) {
  const std::optional<std::string> usage_text = read_text(folder + "/" + version.usage);
  const std::optional<std::uint64_t> usage =
      usage_text ? leading_number(*usage_text) : std::nullopt;
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
    const std::optional<std::string> text = read_text(path);
    // "max" is no number, and 0 cannot hold for a process that runs.
    const std::uint64_t limit = text ? leading_number(*text).value_or(0) : 0;
    if (limit == 0 || limit >= kNoLimit) continue;
    out->push_back({limit, room_in(folder, version, limit), path});
  }
}

// Our group and all above it, up to and with the mount point.
void walk_up(const View& view, std::string below, std::vector<GroupLimit>* out) {
  const Version& version = view.v2 ? kV2 : kV1;
  for (;;) {
    add_limits(view.point + below, version, out);
    if (below.empty()) return;
    below.resize(std::min(below.rfind('/'), below.size() - 1));
  }
}

}  // namespace

std::vector<GroupLimit> group_limits(const SystemRoot& root) {
  std::vector<GroupLimit> limits;
  const std::optional<std::string> groups = read_text(root.proc + "/self/cgroup");
  const std::optional<std::string> mountinfo = read_text(root.proc + "/self/mountinfo");
  if (!groups || !mountinfo) return limits;
  const std::vector<View> views = memory_views(*mountinfo, root);
  for (const bool v2 : {false, true}) {
    const std::optional<std::string> group = own_group(*groups, v2);
    if (!group) continue;
    const View* shown = nullptr;
    std::string below;
    for (const View& view : views) {
      if (view.v2 != v2) continue;
      const std::optional<std::string> way = below_mount(*group, view.root);
      if (shown == nullptr) shown = &view;  // better the mount's own limit than none
      if (!way) continue;
      shown = &view;
      below = *way;
      break;
    }
    if (shown != nullptr) walk_up(*shown, below, &limits);
  }
  return limits;
}

}  // namespace lowtide
