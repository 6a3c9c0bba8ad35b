#include "verdict/courses.h"

#include <algorithm>
#include <map>
#include <set>

#include "meter/sums.h"
#include "verdict/unknowns.h"

namespace lowtide {
namespace {

constexpr const char* kSystemFolders[] = {"/locale/", "/gconv/", "/zoneinfo/"};

using Bytes = std::optional<std::uint64_t>;

Bytes largest_shmem(const Reading& reading) {
  Bytes largest;
  for (const ProcessReading& process : reading.processes) {
    raise_known(largest, process.shmem.value);
  }
  return largest;
}

void see_processes(Courses& courses, const Reading& reading, const Sums& sums) {
  const double seconds = reading.seconds;
  courses.processes.see(seconds, reading.processes.size());
  Bytes heap = sums.anon;
  if (heap) add_known(heap, sums.swap);
  courses.heap.see(seconds, heap);
  courses.file.see(seconds, sums.file);
  courses.page_tables.see(seconds, sums.page_tables);
  courses.shmem.see(seconds, largest_shmem(reading));
  courses.pss.see(seconds, sums.pss);
  courses.rss.see(seconds, sums.rss);
}

void see_cache(Courses& courses, const Reading& reading) {
  courses.cached.see(reading.seconds, cached_of(reading));
  courses.group_file.see(reading.seconds, group_cache_of(reading));
}

void see_shared(std::optional<SharedMoment>& shared, const Reading& reading, const Sums& sums) {
  if (reading.processes.size() < 2 || !sums.rss || !sums.pss || *sums.pss > *sums.rss) return;
  if (shared && *sums.rss - *sums.pss <= shared->rss - shared->pss) return;
  shared = {*sums.rss, *sums.pss, reading.processes.size()};
}

// Whether the file is a program that ran; not all are in a bin folder (cc1plus).
bool is_program(const std::string& path, const std::set<std::string>& names) {
  constexpr std::size_t kMostName = 15;  // the kernel truncates longer names
  return names.contains(path.substr(path.rfind('/') + 1, kMostName));
}

std::vector<GrownFile> grown_files(const Trace& trace) {
  struct Seen {
    std::uint64_t first, peak;
  };
  std::map<std::string, Seen> seen;
  std::set<std::string> names;
  bool first_list = true;
  for (const Reading& reading : trace.readings) {
    for (const ProcessReading& process : reading.processes) names.insert(process.name);
    if (!reading.files) continue;
    for (const FileReading& file : *reading.files) {
      if (!file.mapped.value) continue;
      const std::uint64_t mapped = *file.mapped.value;
      // A file that is missing from the first list was not mapped then.
      Seen& one = seen.try_emplace(file.path, Seen{first_list ? mapped : 0, 0}).first->second;
      one.peak = std::max(one.peak, mapped);
    }
    first_list = false;
  }
  std::vector<GrownFile> files;
  for (const auto& [path, one] : seen) {
    files.push_back({path, one.peak - std::min(one.first, one.peak), one.peak,
                     is_library(path) || is_program(path, names)});
  }
  std::ranges::stable_sort(files, [](const GrownFile& a, const GrownFile& b) {
    return a.rise != b.rise ? a.rise > b.rise : a.peak > b.peak;
  });
  return files;
}

}  // namespace

bool is_library(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.find(".so.") != std::string::npos || name.ends_with(".so")) return true;
  // Programs have names like "node" or "python3.12"; "train.bin" is data, even in a bin folder.
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  const bool plain = name.find_first_not_of(".0123456789", dot) == std::string::npos;
  if (plain && path.ends_with("/bin/" + name)) return true;
  // Files that the C library maps itself: locales, character sets, time zones, its cache.
  return name == "ld.so.cache" || std::ranges::any_of(kSystemFolders, [&](const char* folder) {
           return path.find(folder) != std::string::npos;
         });
}

std::uint64_t Courses::mapped_rise() const {
  std::uint64_t data = 0, libraries = 0;
  for (const GrownFile& one : files) {
    std::uint64_t& sum = one.library ? libraries : data;
    sum = saturating_add(sum, one.rise);
  }
  return std::max(data, file.rise() - std::min(file.rise(), libraries));
}

Courses courses_of(const Trace& trace) {
  Courses courses;
  courses.unknown = unknowns_of(trace);
  if (trace.readings.empty()) return courses;
  courses.lives = lives_of(trace);
  const std::size_t settled = first_settled(trace), end = last_whole(trace, courses.lives);
  std::optional<double> begin;
  for (std::size_t i = 0; i < trace.readings.size(); ++i) {
    const Reading& reading = trace.readings[i];
    if (i >= settled) see_cache(courses, reading);
    if (reading.processes.empty()) continue;
    ++courses.readings;
    if (!begin) begin = reading.seconds;
    courses.seconds = reading.seconds - *begin;
    const Sums sums = sums_of(reading);
    if (i >= settled && i <= end) see_processes(courses, reading, sums);
    see_shared(courses.shared, reading, sums);
  }
  courses.files = grown_files(trace);
  return courses;
}

}  // namespace lowtide
