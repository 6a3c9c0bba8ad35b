#include "verdict/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/quote.h"
#include "lowtide/bytes.h"
#include "verdict/evidence.h"
#include "verdict/facts.h"

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
bool only_forked(const Facts& facts) {
  if (facts.pss.points.size() < 2) return false;
  const double grown = static_cast<double>(facts.pss.last) - static_cast<double>(facts.pss.first);
  const double summed = static_cast<double>(facts.rss.last) - static_cast<double>(facts.rss.first);
  return facts.shared && summed > 0 && grown < summed / 4;
}

// The number of processes grows, although none of them grows by itself.
bool more_processes(const Facts& facts) {
  return facts.processes.last > facts.processes.first;
}

std::vector<const Life*> leaking(const Facts& facts) {
  std::vector<const Life*> found;
  for (const Life& life : facts.lives) {
    if (life.leaks) found.push_back(&life);
  }
  std::ranges::sort(found, std::ranges::greater{},
                    [](const Life* life) { return life->heap_trend->slope; });
  return found;
}

bool counted_twice(const Facts& facts) {
  return facts.shared && facts.shared->rss - facts.shared->pss >= kLeastShared &&
         facts.shared->pss <= facts.shared->rss / 2;
}

bool matters(std::uint64_t rise, const Facts& facts) {
  return rise >= kLeastRise && rise >= facts.rss.peak / 20;
}

std::uint64_t cache_rise(const Facts& facts) {
  return std::max(facts.cached.rise(), facts.group_file.rise());
}

VerdictKind decide(const Facts& facts, const Trends& trends) {
  const bool seen = facts.heap.known() || facts.file.known();
  if (!seen || (!trends.heap && !trends.file)) return VerdictKind::too_short;
  if (!leaking(facts).empty()) return VerdictKind::heap_leak;
  if (leaks(facts.heap, trends.heap)) {
    return only_forked(facts) ? VerdictKind::shared_twice : VerdictKind::heap_leak;
  }
  if (leaks(facts.shmem, trends.shmem)) return VerdictKind::heap_leak;
  const std::uint64_t mapped = facts.mapped_rise();
  const std::uint64_t tables = facts.page_tables.rise();
  if (tables >= kLeastRise && tables >= std::max(mapped, facts.heap.rise()) / 2) {
    return VerdictKind::page_tables;
  }
  if (counted_twice(facts)) return VerdictKind::shared_twice;
  if (matters(mapped, facts)) return VerdictKind::mapped_files;
  if (matters(cache_rise(facts), facts)) return VerdictKind::page_cache;
  return VerdictKind::flat;
}

std::string flat_headline(const Facts& facts, const Trends& trends) {
  if (!trends.heap) return "No mapped file grew; the heap could not be read.";
  const std::string level = "at " + format_bytes(facts.heap.last);
  if (!matters(facts.heap.rise(), facts)) {
    return "Memory is flat: the heap never grew above " + format_bytes(facts.heap.peak) + ".";
  }
  if (facts.heap.last < facts.heap.peak - facts.heap.rise() / 2) {
    return "No leak: the heap grew by " + format_bytes(facts.heap.rise()) +
           " and was released again; it ends " + level + ".";
  }
  return "No leak seen: the heap grew by " + format_bytes(facts.heap.rise()) +
         ", but not steadily; it ends " + level + ".";
}

std::string leak_headline(const Facts& facts, const Trends& trends) {
  constexpr const char* kLooksLike = " and does not level off: this looks like a leak.";
  const std::vector<const Life*> found = leaking(facts);
  if (!found.empty()) {
    const Life& most = *found.front();
    const std::string who = process_text(most.name, most.pid), rate = rate_text(*most.heap_trend);
    if (facts.lives.size() == 1 || who.empty()) return "The heap grows by " + rate + kLooksLike;
    if (found.size() == 1) return "The heap of " + who + " grows by " + rate + kLooksLike;
    return "The heaps of " + std::to_string(found.size()) +
           " processes grow and do not level off, fastest in " + who + " by " + rate +
           ": this looks like a leak.";
  }
  if (leaks(facts.heap, trends.heap)) {
    const std::string rate = rate_text(*trends.heap);
    if (facts.lives.size() == 1) return "The heap grows by " + rate + kLooksLike;
    if (!more_processes(facts)) return "The heap of all processes grows by " + rate + kLooksLike;
    return "The heap of all processes grows by " + rate +
           " because their number grows: " + std::to_string(facts.processes.first) +
           " after the start, " + std::to_string(facts.processes.last) +
           " at the end; none of them was seen to leak by itself.";
  }
  return "Shared memory grows by " + rate_text(*trends.shmem) +
         " and does not level off: this looks like a leak.";
}

std::string short_headline(const Facts& facts) {
  if (facts.readings == 0) return "Nothing to judge: no process was seen.";
  if (!facts.heap.known() && !facts.file.known() && facts.readings > 1) {
    return "No verdict: heap and mapped files could not be told apart.";
  }
  return "Too short for a verdict: " + readings_text(facts) + ".";
}

std::string headline(VerdictKind kind, const Facts& facts, const Trends& trends) {
  switch (kind) {
    case VerdictKind::heap_leak:
      return leak_headline(facts, trends);
    case VerdictKind::mapped_files:
      return "No leak: RSS grew because of pages of mapped files (" +
             format_bytes(facts.mapped_rise()) +
             "), which the kernel reclaims when it needs memory.";
    case VerdictKind::page_cache:
      return "No leak: only the page cache grew (" + format_bytes(cache_rise(facts)) +
             "); no process holds it, and the kernel reclaims it when it needs memory.";
    case VerdictKind::page_tables:
      return "The page tables grew by " + format_bytes(facts.page_tables.rise()) +
             ": they map memory, are not part of RSS, and stay until that memory is unmapped.";
    case VerdictKind::shared_twice:
      return "No leak seen: the sum of RSS counts shared pages once per process: " +
             format_bytes(facts.shared->rss) + " as a sum, " + format_bytes(facts.shared->pss) +
             " really held (PSS).";
    case VerdictKind::too_short:
      return short_headline(facts);
    case VerdictKind::flat:
      break;
  }
  return flat_headline(facts, trends);
}

std::vector<std::string> advice(VerdictKind kind, const Facts& facts) {
  switch (kind) {
    case VerdictKind::heap_leak: {
      const std::vector<const Life*> found = leaking(facts);
      if (found.empty() && more_processes(facts)) return {kEndProcesses};
      const bool in_child = !found.empty() && found.front() != &facts.lives.front();
      return {in_child ? kFindInChildren : kFindAllocations};
    }
    case VerdictKind::mapped_files: {
      const auto data = std::ranges::find_if_not(facts.files, &GrownFile::library);
      if (data == facts.files.end() || data->rise == 0) return {kReadInstead};
      // Files are read rarely: the last reading of this one may predate most of the growth.
      if (data->rise < facts.mapped_rise() / 2) {
        return {"check " + shown(data->path) + ": it grew most of all files seen", kReadInstead};
      }
      return {"most of it is " + shown(data->path) + " (" + format_bytes(data->rise) + ")",
              kReadInstead};
    }
    case VerdictKind::page_tables:
      return {kShareTables};
    case VerdictKind::shared_twice:
      return {kCountPss};
    case VerdictKind::too_short:
      if (facts.heap.known() || facts.readings == 0) return {"let the program run longer"};
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
  const Facts facts = facts_of(trace);
  const Trends trends{.heap = trend_of(facts.heap.points),
                      .file = trend_of(facts.file.points),
                      .shmem = trend_of(facts.shmem.points)};
  const VerdictKind kind = decide(facts, trends);
  return {.kind = kind,
          .headline = headline(kind, facts, trends),
          .evidence = evidence_of(facts, trends),
          .unknown = facts.unknown,
          .advice = advice(kind, facts)};
}

}  // namespace lowtide
