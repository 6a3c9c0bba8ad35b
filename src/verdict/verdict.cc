#include "verdict/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/quote.h"
#include "lowtide/bytes.h"
#include "verdict/courses.h"
#include "verdict/evidence.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kLeastRise = 16 * kMiB;
constexpr std::uint64_t kLeastShared = 64 * kMiB;

constexpr const char* kReadInstead =
    "read arrays with lt.open and token files with lt.tokens: they stay within their budget; if a "
    "map must remain, limit it with lt.memmap, or with lowtide guard --limit 512MiB PROGRAM for a "
    "program that you cannot change";
constexpr const char* kFindAllocations =
    "find the code that allocates it with an allocation profiler (Python: memray or tracemalloc)";
constexpr const char* kFindInChildren =
    "find the code that allocates it with an allocation profiler that follows child processes "
    "(Python: memray run --follow-fork)";
constexpr const char* kEndProcesses =
    "find the code that starts these processes without ending them or waiting for them";
constexpr const char* kShareTables =
    "map less at a time, or read instead of mapping: lt.open and lt.tokens need no page tables";
constexpr const char* kCountPss =
    "to see what the processes really hold, add up PSS, not RSS; the memory group's limit counts "
    "each page once";

bool leaks(const Course& course, const std::optional<Trend>& trend) {
  return is_leak(trend, course.peak);
}

// Forked processes each count the same private pages: the sum grows although PSS does not.
bool only_forked(const Courses& courses) {
  if (courses.pss.points.size() < 2) return false;
  const double grown =
      static_cast<double>(courses.pss.last) - static_cast<double>(courses.pss.first);
  const double summed =
      static_cast<double>(courses.rss.last) - static_cast<double>(courses.rss.first);
  return courses.shared && summed > 0 && grown < summed / 4;
}

// The number of processes grows, although none of them grows by itself.
bool more_processes(const Courses& courses) {
  return courses.processes.last > courses.processes.first;
}

std::vector<const Life*> leaking(const Courses& courses) {
  std::vector<const Life*> found;
  for (const Life& life : courses.lives) {
    if (life.leaks) found.push_back(&life);
  }
  std::ranges::sort(found, std::ranges::greater{},
                    [](const Life* life) { return life->heap_trend->slope; });
  return found;
}

bool counted_twice(const Courses& courses) {
  return courses.shared && courses.shared->rss - courses.shared->pss >= kLeastShared &&
         courses.shared->pss <= courses.shared->rss / 2;
}

bool matters(std::uint64_t rise, const Courses& courses) {
  return rise >= kLeastRise && rise >= courses.rss.peak / 20;
}

std::uint64_t cache_rise(const Courses& courses) {
  return std::max(courses.cached.rise(), courses.group_file.rise());
}

VerdictKind decide(const Courses& courses, const Trends& trends) {
  const bool seen = courses.heap.known() || courses.file.known();
  if (!seen || (!trends.heap && !trends.file)) return VerdictKind::too_short;
  if (!leaking(courses).empty()) return VerdictKind::heap_leak;
  if (leaks(courses.heap, trends.heap)) {
    return only_forked(courses) ? VerdictKind::shared_twice : VerdictKind::heap_leak;
  }
  if (leaks(courses.shmem, trends.shmem)) return VerdictKind::heap_leak;
  const std::uint64_t mapped = courses.mapped_rise();
  const std::uint64_t tables = courses.page_tables.rise();
  if (tables >= kLeastRise && tables >= std::max(mapped, courses.heap.rise()) / 2) {
    return VerdictKind::page_tables;
  }
  if (counted_twice(courses)) return VerdictKind::shared_twice;
  if (matters(mapped, courses)) return VerdictKind::mapped_files;
  if (matters(cache_rise(courses), courses)) return VerdictKind::page_cache;
  return VerdictKind::flat;
}

std::string flat_headline(const Courses& courses, const Trends& trends) {
  if (!trends.heap) return "No mapped file grew; the heap could not be read.";
  const std::string level = "at " + format_bytes(courses.heap.last);
  if (!matters(courses.heap.rise(), courses)) {
    return "Memory is flat: the heap never grew above " + format_bytes(courses.heap.peak) + ".";
  }
  if (courses.heap.last < courses.heap.peak - courses.heap.rise() / 2) {
    return "No leak: the heap grew by " + format_bytes(courses.heap.rise()) +
           " and was released again; it ends " + level + ".";
  }
  return "No leak seen: the heap grew by " + format_bytes(courses.heap.rise()) +
         ", but not steadily; it ends " + level + ".";
}

std::string leak_headline(const Courses& courses, const Trends& trends) {
  constexpr const char* kLooksLike = " and does not level off: this looks like a leak.";
  const std::vector<const Life*> found = leaking(courses);
  if (!found.empty()) {
    const Life& most = *found.front();
    const std::string who = process_text(most.name, most.pid), rate = rate_text(*most.heap_trend);
    if (courses.lives.size() == 1 || who.empty()) return "The heap grows by " + rate + kLooksLike;
    if (found.size() == 1) return "The heap of " + who + " grows by " + rate + kLooksLike;
    return "The heaps of " + std::to_string(found.size()) +
           " processes grow and do not level off, fastest in " + who + " by " + rate +
           ": this looks like a leak.";
  }
  if (leaks(courses.heap, trends.heap)) {
    const std::string rate = rate_text(*trends.heap);
    if (courses.lives.size() == 1) return "The heap grows by " + rate + kLooksLike;
    if (!more_processes(courses)) return "The heap of all processes grows by " + rate + kLooksLike;
    return "The heap of all processes grows by " + rate +
           " because their number grows: " + std::to_string(courses.processes.first) +
           " after the start, " + std::to_string(courses.processes.last) +
           " at the end; none of them was seen to leak by itself.";
  }
  return "Shared memory grows by " + rate_text(*trends.shmem) +
         " and does not level off: this looks like a leak.";
}

std::string short_headline(const Courses& courses) {
  if (courses.readings == 0) return "Nothing to judge: no process was seen.";
  if (!courses.heap.known() && !courses.file.known() && courses.readings > 1) {
    return "No verdict: heap and mapped files could not be told apart.";
  }
  return "Too short for a verdict: " + readings_text(courses) + ".";
}

std::string headline(VerdictKind kind, const Courses& courses, const Trends& trends) {
  switch (kind) {
    case VerdictKind::heap_leak:
      return leak_headline(courses, trends);
    case VerdictKind::mapped_files:
      return "No leak: RSS grew because of pages of mapped files (" +
             format_bytes(courses.mapped_rise()) +
             "), which the kernel reclaims when it needs memory.";
    case VerdictKind::page_cache:
      return "No leak: only the page cache grew (" + format_bytes(cache_rise(courses)) +
             "); no process holds it, and the kernel reclaims it when it needs memory.";
    case VerdictKind::page_tables:
      return "The page tables grew by " + format_bytes(courses.page_tables.rise()) +
             ": they map memory, are not part of RSS, and stay until that memory is unmapped.";
    case VerdictKind::shared_twice:
      return "No leak seen: the sum of RSS counts shared pages once per process: " +
             format_bytes(courses.shared->rss) + " as a sum, " + format_bytes(courses.shared->pss) +
             " really held (PSS).";
    case VerdictKind::too_short:
      return short_headline(courses);
    case VerdictKind::flat:
      break;
  }
  return flat_headline(courses, trends);
}

std::vector<std::string> advice(VerdictKind kind, const Courses& courses) {
  switch (kind) {
    case VerdictKind::heap_leak: {
      const std::vector<const Life*> found = leaking(courses);
      if (found.empty() && more_processes(courses)) return {kEndProcesses};
      const bool in_child = !found.empty() && found.front() != &courses.lives.front();
      return {in_child ? kFindInChildren : kFindAllocations};
    }
    case VerdictKind::mapped_files: {
      const auto data = std::ranges::find_if_not(courses.files, &GrownFile::library);
      if (data == courses.files.end() || data->rise == 0) return {kReadInstead};
      // Files are read rarely: the last reading of this one may predate most of the growth.
      if (data->rise < courses.mapped_rise() / 2) {
        return {"check " + shown(data->path) + ": of all files seen, it grew most", kReadInstead};
      }
      return {"most of it is " + shown(data->path) + " (" + format_bytes(data->rise) + ")",
              kReadInstead};
    }
    case VerdictKind::page_tables:
      return {kShareTables};
    case VerdictKind::shared_twice:
      return {kCountPss};
    case VerdictKind::too_short:
      if (courses.heap.known() || courses.readings == 0) return {"let the program run longer"};
      return {};
    case VerdictKind::page_cache:
    case VerdictKind::flat:
      break;
  }
  return {};
}

}  // namespace

const char* verdict_word(VerdictKind kind) noexcept {
  switch (kind) {
    case VerdictKind::flat:
      return "flat";
    case VerdictKind::heap_leak:
      return "heap-leak";
    case VerdictKind::mapped_files:
      return "mapped-files";
    case VerdictKind::page_cache:
      return "page-cache";
    case VerdictKind::page_tables:
      return "page-tables";
    case VerdictKind::shared_twice:
      return "shared-twice";
    case VerdictKind::too_short:
      break;
  }
  return "too-short";
}

Verdict judge(const Trace& trace) {
  const Courses courses = courses_of(trace);
  const Trends trends{.heap = trend_of(courses.heap.points),
                      .file = trend_of(courses.file.points),
                      .shmem = trend_of(courses.shmem.points)};
  const VerdictKind kind = decide(courses, trends);
  return {.kind = kind,
          .headline = headline(kind, courses, trends),
          .evidence = evidence_of(courses, trends),
          .unknown = courses.unknown,
          .advice = advice(kind, courses)};
}

}  // namespace lowtide
