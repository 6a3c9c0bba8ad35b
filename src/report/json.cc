#include "lowtide/command/json.h"

#include <algorithm>
#include <map>
#include <utility>

#include "meter/sums.h"
#include "report/report.h"
#include "verdict/file_rows.h"
#include "verdict/lives.h"
#include "verdict/summary.h"
#include "verdict/verdict.h"

namespace lowtide {
namespace {

constexpr int kJsonFormat = 1;  // the field "format"; docs/profile.md

void add_level(JsonWriter& json, const char* name, const Level& level) {
  json.key(name).begin_object();
  json.field("rss", level.rss).field("anon", level.anon).field("file", level.file);
  json.field("shmem", level.shmem).field("page_tables", level.page_tables);
  json.field("page_cache", level.page_cache).field("group_usage", level.group_usage).end_object();
}

void add_growth(JsonWriter& json, const Growth& growth) {
  json.key("growth").begin_object();
  json.field("rss", growth.rss).field("anon", growth.anon).field("file", growth.file);
  json.field("shmem", growth.shmem).field("page_tables", growth.page_tables);
  json.field("page_cache", growth.page_cache).end_object();
}

void add_verdict(JsonWriter& json, const Verdict& verdict) {
  json.key("verdict").begin_object();
  json.field("kind", verdict_word(verdict.kind)).field("headline", verdict.headline);
  json.field("evidence", verdict.evidence).field("unknown", verdict.unknown);
  json.field("advice", verdict.advice).end_object();
}

// The largest first: a build starts thousands of processes, most of them insignificant.
void add_processes(JsonWriter& json, const Trace& trace) {
  constexpr std::size_t kMost = 100;
  std::vector<Life> lives = lives_of(trace);
  std::ranges::stable_sort(lives, std::ranges::greater{},
                           [](const Life& life) { return life.heap.peak; });
  if (lives.size() > kMost) lives.resize(kMost);
  json.key("processes").begin_array();
  for (const Life& life : lives) {
    const bool known = life.heap.known();
    const auto bytes = [known](std::uint64_t value) {
      return known ? std::optional(value) : std::nullopt;
    };
    json.begin_object().field("pid", life.pid).field("parent", life.parent);
    json.field("name", life.name).field("began", life.begin_s);
    json.key("ended");
    life.ended ? json.value(life.end_s) : json.null();
    json.key("heap").begin_object().field("start", bytes(life.heap.first));
    json.field("peak", bytes(life.heap.peak)).field("end", bytes(life.heap.last)).end_object();
    json.key("bytes_per_second");
    life.heap_trend ? json.value(life.heap_trend->slope) : json.null();
    json.field("leaks", life.leaks).end_object();
  }
  json.end_array();
}

// What each reading of the files found for one file.
struct Looks {
  std::vector<double> seconds;
  std::vector<std::optional<std::uint64_t>> mapped, cached;
};

void add_files(JsonWriter& json, const Trace& trace) {
  std::map<std::string, Looks> looks;
  for (const Reading& reading : trace.readings) {
    for (const FileReading& file : reading.files.value_or(std::vector<FileReading>{})) {
      Looks& all = looks[file.path];
      all.seconds.push_back(reading.seconds);
      all.mapped.push_back(file.mapped.value);
      all.cached.push_back(file.cached.value);
    }
  }
  json.key("files").begin_array();
  for (const FileRow& row : file_rows(trace)) {
    json.begin_object().field("path", row.path).field("deleted", row.deleted);
    json.field("peak_mapped", row.peak_mapped).field("peak_cached", row.peak_cached);
    json.field("size", row.size).field("mapped_now", row.mapped_now);
    const Looks& all = looks[row.path];
    json.key("looks").begin_object().field("seconds", all.seconds);
    json.field("mapped", all.mapped).field("cached", all.cached).end_object().end_object();
  }
  json.end_array();
}

void add_group(JsonWriter& json, const Trace& trace) {
  const auto has_group = [](const Reading& reading) { return reading.group.has_value(); };
  const auto last = std::find_if(trace.readings.rbegin(), trace.readings.rend(), has_group);
  json.key("group");
  if (last == trace.readings.rend()) {
    json.null();
    return;
  }
  const GroupReading& group = *last->group;
  json.begin_object().field("path", group.path).field("version", group.version);
  json.field("usage", group.usage.value).field("anon", group.anon.value);
  json.field("inactive_file", group.inactive_file.value);
  json.field("active_file", group.active_file.value);
  json.field("working_set", group.working_set.value).field("limit", group.limit.value);
  json.field("limit_hits", group.limit_hits.value).field("oom_kills", group.oom_kills.value);
  json.end_object();
}

template <typename Value>
void add_column(JsonWriter& json, const char* name, const Trace& trace, Value value) {
  json.key(name).begin_array();
  for (const Reading& reading : trace.readings) json.value(value(reading));
  json.end_array();
}

void add_readings(JsonWriter& json, const Trace& trace) {
  std::vector<Sums> sums;
  for (const Reading& reading : trace.readings) sums.push_back(sums_of(reading));
  using Sum = std::optional<std::uint64_t>;
  constexpr std::pair<const char*, Sum Sums::*> kColumns[] = {{"rss", &Sums::rss},
                                                              {"anon", &Sums::anon},
                                                              {"file", &Sums::file},
                                                              {"shmem", &Sums::shmem},
                                                              {"page_tables", &Sums::page_tables},
                                                              {"swap", &Sums::swap},
                                                              {"pss", &Sums::pss},
                                                              {"disk_bytes", &Sums::disk_bytes},
                                                              {"asked_bytes", &Sums::asked_bytes},
                                                              {"threads", &Sums::threads}};
  json.key("readings").begin_object();
  add_column(json, "seconds", trace, [](const Reading& one) { return one.seconds; });
  add_column(json, "processes", trace, [](const Reading& one) { return one.processes.size(); });
  for (const auto& [name, member] : kColumns) {
    json.key(name).begin_array();
    for (const Sums& one : sums) json.value(one.*member);
    json.end_array();
  }
  add_column(json, "page_cache", trace, cached_of);
  add_column(json, "group_usage", trace,
             [](const Reading& one) { return one.group ? one.group->usage.value : std::nullopt; });
  json.end_object();
}

void add_marks(JsonWriter& json, const Trace& trace) {
  json.key("marks").begin_array();
  for (const Mark& mark : trace.marks) {
    json.begin_object().field("seconds", mark.seconds).field("text", mark.text).end_object();
  }
  json.end_array();
}

}  // namespace

std::string json_report(const Trace& trace) {
  JsonWriter json;
  json.begin_object().field("format", kJsonFormat).field("command", trace.command);
  json.field("pid", trace.root_pid).field("started_unix_ms", trace.started_unix_ms);
  json.field("machine", trace.machine).field("seconds", seconds_of(trace));
  json.field("exit", trace.ending ? trace.ending->exit_code : std::nullopt);
  json.field("complete", trace.ending.has_value() && !trace.cut);
  add_level(json, "start", start_of(trace));
  add_level(json, "peak", peak_of(trace));
  add_level(json, "end", end_of(trace));
  add_growth(json, growth_of(trace));
  add_verdict(json, judge(trace));
  add_processes(json, trace);
  add_files(json, trace);
  add_group(json, trace);
  json.key("cost_cpu_seconds");
  trace.ending ? json.value(trace.ending->cost_cpu_seconds) : json.null();
  add_marks(json, trace);
  add_readings(json, trace);
  json.field("trace", trace_text(trace));
  json.end_object();
  return json.text() + "\n";
}

}  // namespace lowtide
