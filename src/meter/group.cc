#include "meter/group.h"

#include <algorithm>

#include "system/cgroup.h"

namespace lowtide {

Figure to_figure(const ToldBytes& told) {
  return told ? Figure::known(*told) : Figure::unknown(told.why);
}

GroupReading read_group(const SystemRoot& root, int pid) {
  const Told<GroupUsage> told = group_usage(root, pid);
  GroupReading reading;
  if (!told) {
    for (Figure* const figure :
         {&reading.usage, &reading.anon, &reading.inactive_file, &reading.active_file,
          &reading.working_set, &reading.limit, &reading.limit_hits, &reading.oom_kills}) {
      *figure = Figure::unknown(told.why);
    }
    return reading;
  }
  reading.path = told->folder;
  reading.version = told->version;
  reading.usage = to_figure(told->usage);
  reading.anon = to_figure(told->anon);
  reading.inactive_file = to_figure(told->inactive_file);
  reading.active_file = to_figure(told->active_file);
  reading.limit = to_figure(told->limit);
  reading.limit_hits = to_figure(told->limit_hits);
  reading.oom_kills = to_figure(told->oom_kills);
  if (!told->usage) {
    reading.working_set = reading.usage;
  } else if (!told->inactive_file) {
    reading.working_set = reading.inactive_file;
  } else {
    const std::uint64_t idle = std::min(*told->usage, *told->inactive_file);
    reading.working_set = Figure::known(*told->usage - idle);
  }
  return reading;
}

}  // namespace lowtide
