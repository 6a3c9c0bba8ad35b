#include "verdict/evidence.h"

#include <algorithm>
#include <cmath>

#include "core/quote.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

constexpr double kBytesPerMiB = 1 << 20;

std::string rise_text(const char* what, const Course& course) {
  return std::string(what) + ": " + format_bytes(course.first) + " after the start, " +
         format_bytes(course.peak) + " at its peak, " + format_bytes(course.last) + " at the end";
}

std::string seconds_text(double seconds) {
  if (seconds < 0.1) return format_fixed(seconds * 1e3, 0) + " ms";
  if (seconds < 10) return format_fixed(seconds, 1) + " s";
  if (seconds < 120) return format_fixed(seconds, 0) + " s";
  if (seconds < 7200) return format_fixed(seconds / 60, 1) + " min";
  return format_fixed(seconds / 3600, 1) + " h";
}

// Less than a twentieth of the resident memory explains nothing that the curve shows, and less than
// 4 MiB is not worth looking for (the threshold of a leak is the same).
bool matters(std::uint64_t bytes, std::uint64_t whole) {
  return bytes >= std::max(static_cast<std::uint64_t>(4 * kBytesPerMiB), whole / 20);
}

// Every process that leaks; if none does, the one whose heap grew most.
void add_processes(std::vector<std::string>& evidence, const Courses& courses) {
  constexpr std::size_t kMost = 4;
  if (courses.lives.size() < 2) return;
  const auto text = [](const Life& life) {
    return "heap of " + process_text(life.name, life.pid) + ": " + format_bytes(life.heap.first) +
           " to " + format_bytes(life.heap.last) + " in " + seconds_text(life.end_s - life.begin_s);
  };
  std::size_t told = 0;
  for (const Life& life : courses.lives) {
    if (!life.leaks || told++ >= kMost) continue;
    evidence.push_back(text(life) + ", growing steadily by " + rate_text(*life.heap_trend));
  }
  if (told > kMost) {
    evidence.push_back("and " + std::to_string(told - kMost) + " more leaking processes");
  }
  if (told > 0) return;
  const auto grown = [](const Life& life) {
    return life.heap.last - std::min(life.heap.first, life.heap.last);
  };
  const auto most = std::ranges::max_element(courses.lives, {}, grown);
  if (matters(grown(*most), courses.rss.peak))
    evidence.push_back(text(*most) + ", the largest growth");
}

void add_files(std::vector<std::string>& evidence, const Courses& courses) {
  constexpr int kMost = 3;
  const std::uint64_t all = courses.mapped_rise();
  if (!matters(all, courses.rss.peak)) return;
  int told = 0;
  for (const GrownFile& file : courses.files) {
    if (file.library || !matters(file.rise, all) || told == kMost) continue;
    ++told;
    evidence.push_back("mapped: " + shown(file.path) + ", which grew by " +
                       format_bytes(file.rise) + " to " + format_bytes(file.peak));
  }
}

}  // namespace

std::string rate_text(const Trend& trend) {
  const double per_second = trend.slope / kBytesPerMiB;
  double scale = 1;
  const char* unit = " MiB/s";
  if (std::abs(per_second) < 0.1) {
    scale = std::abs(per_second) * 60 < 0.1 ? 3600 : 60;
    unit = scale == 60 ? " MiB/min" : " MiB/h";
  }
  const double rate = per_second * scale;
  const int decimals = std::abs(rate) >= 100 ? 0 : std::abs(rate) >= 10 ? 1 : 2;
  return format_fixed(rate, decimals) + " +- " +
         format_fixed(trend.error / kBytesPerMiB * scale, decimals) + unit;
}

std::string readings_text(const Courses& courses) {
  return std::to_string(courses.readings) + (courses.readings == 1 ? " reading" : " readings") +
         " in " + seconds_text(courses.seconds);
}

std::vector<std::string> evidence_of(const Courses& courses, const Trends& trends) {
  std::vector<std::string> evidence;
  if (courses.readings == 0) return evidence;
  evidence.push_back(readings_text(courses));
  // If a single process is named as leaking, the sum over all processes would only confuse.
  const bool named = courses.lives.size() > 1 && std::ranges::any_of(courses.lives, &Life::leaks);
  if (trends.heap && !named) {
    evidence.push_back("growth of the heap's lowest level: " + rate_text(*trends.heap) +
                       (trends.heap->steady ? ", steady" : ", not steady"));
  }
  add_processes(evidence, courses);
  const auto add = [&](const char* what, const Course& course) {
    if (course.known() && matters(course.rise(), courses.rss.peak)) {
      evidence.push_back(rise_text(what, course));
    }
  };
  add_files(evidence, courses);
  add("shared memory of the largest process", courses.shmem);
  if (courses.shared && matters(courses.shared->rss - courses.shared->pss, courses.rss.peak)) {
    evidence.push_back("RSS of " + std::to_string(courses.shared->processes) +
                       " processes: " + format_bytes(courses.shared->rss) + " as a sum, " +
                       format_bytes(courses.shared->pss) +
                       " with each shared page counted once (PSS)");
  }
  add("page cache charged to the memory group", courses.group_file);
  return evidence;
}

}  // namespace lowtide
