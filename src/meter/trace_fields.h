// trace_fields.h - the figures of a trace's records, in file order: named once for the writer and
// the parser. Any change here requires a new kTraceFormat.
#pragma once

#include <cstddef>
#include <string_view>

#include "meter/reading.h"

namespace lowtide {

inline constexpr std::string_view kTraceMagic = "lowtide-trace";
inline constexpr int kTraceFormat = 1;
// Longer reasons are cut when written and refused when read, since each figure stores a copy.
inline constexpr std::size_t kMostReasonBytes = 200;

template <typename Process, typename Visit>
void visit_process(Process& process, Visit visit) {
  visit(process.anon);
  visit(process.file);
  visit(process.shmem);
  visit(process.page_tables);
  visit(process.swap);
  visit(process.pss);
  visit(process.minor_faults);
  visit(process.major_faults);
  visit(process.disk_bytes);
  visit(process.asked_bytes);
  visit(process.threads);
}

template <typename File, typename Visit>
void visit_file(File& file, Visit visit) {
  visit(file.size);
  visit(file.mapped);
  visit(file.pss);
  visit(file.cached);
}

template <typename Group, typename Visit>
void visit_group(Group& group, Visit visit) {
  visit(group.usage);
  visit(group.anon);
  visit(group.inactive_file);
  visit(group.active_file);
  visit(group.working_set);
  visit(group.limit);
  visit(group.limit_hits);
  visit(group.oom_kills);
}

}  // namespace lowtide
