#include "meter/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/quote.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

constexpr double kMiB = 1 << 20;

std::string rise_text(const char* what, const Course& course) {
  return std::string(what) + ": " + format_bytes(course.first) + " after the start, " +
         format_bytes(course.peak) + " at its peak, " + format_bytes(course.last) + " at the end";
}

// The process whose private memory grew most between its first reading and its last.
std::optional<std::string> grown_process(const Trace& trace) {
  struct Ends {
    std::string name;
    std::uint64_t first = 0, last = 0;
  };
  std::map<std::pair<int, std::uint64_t>, Ends> ends;
  for (const Reading& reading : trace.readings) {
    for (const ProcessReading& process : reading.processes) {
      if (!process.anon.value) continue;
      const auto [at, added] = ends.try_emplace({process.pid, process.start_ticks});
      if (added) at->second.first = *process.anon.value;
      at->second.name = process.name;
      at->second.last = *process.anon.value;
    }
  }
  if (ends.size() < 2) return std::nullopt;
  const auto rise = [](const auto& entry) {
    return entry.second.last - std::min(entry.second.first, entry.second.last);
  };
  const auto most = std::ranges::max_element(ends, {}, rise);
  if (rise(*most) == 0) return std::nullopt;
  return "the process whose heap grew most: " + shown(most->second.name) + " (pid " +
         std::to_string(most->first.first) + "), by " + format_bytes(rise(*most));
}

void add_files(std::vector<std::string>& evidence, const Facts& facts) {
  int told = 0;
  for (const GrownFile& file : facts.files) {
    if (file.library || file.rise == 0 || told == 3) continue;
    ++told;
    evidence.push_back("mapped: " + shown(file.path) + ", grew by " + format_bytes(file.rise) +
                       " to " + format_bytes(file.peak));
  }
}

std::string seconds_text(double seconds) {
  if (seconds < 0.1) return format_fixed(seconds * 1e3, 0) + " ms";
  if (seconds < 10) return format_fixed(seconds, 1) + " s";
  if (seconds < 120) return format_fixed(seconds, 0) + " s";
  if (seconds < 7200) return format_fixed(seconds / 60, 1) + " min";
  return format_fixed(seconds / 3600, 1) + " h";
}

}  // namespace

std::string rate_text(const Trend& trend) {
  const double per_second = trend.slope / kMiB;
  double scale = 1;
  const char* unit = " MiB/s";
  if (std::abs(per_second) < 0.1) {
    scale = std::abs(per_second) * 60 < 0.1 ? 3600 : 60;
    unit = scale == 60 ? " MiB/min" : " MiB/h";
  }
  const double rate = per_second * scale;
  const int decimals = std::abs(rate) >= 100 ? 0 : std::abs(rate) >= 10 ? 1 : 2;
  return format_fixed(rate, decimals) + " +- " +
         format_fixed(trend.error / kMiB * scale, decimals) + unit;
}

std::string readings_text(const Facts& facts) {
  return std::to_string(facts.readings) + (facts.readings == 1 ? " reading" : " readings") +
         " within " + seconds_text(facts.seconds);
}

std::vector<std::string> evidence_of(const Trace& trace, const Facts& facts, const Trends& trends) {
  std::vector<std::string> evidence;
  if (facts.readings == 0) return evidence;
  evidence.push_back(readings_text(facts));
  if (facts.heap.known()) evidence.push_back(rise_text("heap", facts.heap));
  if (trends.heap) {
    evidence.push_back("floor of the heap: " + rate_text(*trends.heap) +
                       (trends.heap->steady ? ", steadily" : ", not steadily"));
  }
  if (const auto process = grown_process(trace)) evidence.push_back(*process);
  if (facts.file.known()) evidence.push_back(rise_text("pages of mapped files", facts.file));
  add_files(evidence, facts);
  if (facts.shmem.known() && facts.shmem.peak > 0) {
    evidence.push_back(rise_text("shared memory of the largest process", facts.shmem));
  }
  if (facts.shared) {
    evidence.push_back("RSS of " + std::to_string(facts.shared->processes) +
                       " processes: " + format_bytes(facts.shared->rss) + " summed, " +
                       format_bytes(facts.shared->pss) + " with shared pages divided (PSS)");
  }
  if (facts.page_tables.known()) evidence.push_back(rise_text("page tables", facts.page_tables));
  if (facts.cached.known()) evidence.push_back(rise_text("page cache of the files", facts.cached));
  if (facts.group_file.known()) {
    evidence.push_back(rise_text("page cache charged to the memory group", facts.group_file));
  }
  if (!facts.heap.known() && facts.rss.known()) evidence.push_back(rise_text("RSS", facts.rss));
  return evidence;
}

}  // namespace lowtide
