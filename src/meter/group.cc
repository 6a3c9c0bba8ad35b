#include "meter/group.h"

#include <algorithm>

#include "meter/trace_fields.h"
#include "system/cgroup.h"

namespace lowtide {

GroupReading read_group(const SystemRoot& root, int pid) {
  const Known<GroupUsage> group = group_usage(root, pid);
  GroupReading reading;
  if (!group) {
    visit_group(reading, [&group](Figure& figure) { figure = Figure::unknown(group.why); });
    return reading;
  }
  reading.path = group->folder;
  reading.version = group->version;
  reading.usage = group->usage;
  reading.anon = group->anon;
  reading.inactive_file = group->inactive_file;
  reading.active_file = group->active_file;
  reading.limit = group->limit;
  reading.limit_hits = group->limit_hits;
  reading.oom_kills = group->oom_kills;
  if (!group->usage || !group->inactive_file) {
    reading.working_set = group->usage ? group->inactive_file : group->usage;  // with its reason
  } else {
    const std::uint64_t idle = std::min(*group->usage, *group->inactive_file);
    reading.working_set = Figure::known(*group->usage - idle);
  }
  return reading;
}

}  // namespace lowtide
