#include "meter/sampler.h"

#include <algorithm>
#include <utility>

#include "meter/files.h"
#include "meter/group.h"
#include "system/process.h"

namespace lowtide {
namespace {

// The shares add up to 0.75 %, the allowances to 23 ms: together they keep a run under 1 % from 10
// s on. Files wait longest, because a program maps its data only some time after it has started.
constexpr Ration::Rule kPlain{0.0015, 0.006, 0.05, 0.001, 0.1};
constexpr Ration::Rule kDiscover{0.0012, 0.004, 0.05, 0.002, 0.5};
constexpr Ration::Rule kPss{0.001, 0.003, 0.1, 0.010, 2};
constexpr Ration::Rule kFiles{0.003, 0.008, 0.2, 0.25, 10};
constexpr Ration::Rule kGroup{0.0008, 0.002, 0.05, 0.005, 0.5};

ProcessReading read_process(const SystemRoot& root, const ProcessStat& stat) {
  const ProcessMemory memory = read_memory(root, stat.pid);
  const ProcessIo io = read_io(root, stat.pid);
  ProcessReading reading;
  reading.pid = stat.pid;
  reading.parent = stat.parent;
  reading.start_ticks = stat.start_ticks;
  reading.name = stat.name;
  reading.anon = memory.anon;
  reading.file = memory.file;
  reading.shmem = memory.shmem;
  reading.page_tables = memory.page_tables;
  reading.swap = memory.swap;
  reading.pss = Figure::unknown(kNotAsked);
  reading.minor_faults = Figure::known(stat.minor_faults);
  reading.major_faults = Figure::known(stat.major_faults);
  reading.disk_bytes = io.disk_bytes;
  reading.asked_bytes = io.asked_bytes;
  reading.threads = Figure::known(stat.threads);
  if (!memory.anon && memory.rss) reading.rss_alone = *memory.rss;
  return reading;
}

// A process that is ending releases its memory before it disappears. Figures read at that point do
// not describe its life, and the fact that they could not be read is not worth reporting.
bool is_ending(const SystemRoot& root, const ProcessReading& process) {
  bool gone = false;
  const Known<ProcessStat> now = read_stat(root, process.pid, &gone);
  if (!now) return gone;
  return now->exiting || now->state == 'Z' || now->state == 'X' ||
         now->start_ticks != process.start_ticks;
}

bool is_unread(const ProcessReading& process) {
  return !process.anon.value && !process.rss_alone;
}

// Estimates the cost of walking the pages of the tree before it was tried; rather too high.
double walk_s(const Reading& reading) {
  constexpr double kPageBytes = 4096, kPageS = 60e-9, kProcessS = 300e-6;
  double seconds = 0;
  for (const ProcessReading& process : reading.processes) {
    const std::uint64_t bytes = process.anon.value.value_or(0) + process.file.value.value_or(0) +
                                process.shmem.value.value_or(0);
    seconds += kProcessS + static_cast<double>(bytes) / kPageBytes * kPageS;
  }
  return seconds;
}

}  // namespace

Sampler::Sampler(SamplerOptions options)
    : options_(std::move(options)),
      tree_(options_.root, options_.pid == 0 ? process_id() : options_.pid),
      plain_(kPlain),
      discover_(kDiscover),
      pss_(kPss),
      files_(kFiles),
      group_(kGroup) {}

template <typename Work>
void Sampler::timed(Ration* ration, double seconds, Work work) {
  const std::uint64_t before = options_.cpu_ns();
  work();
  const double cost_s = static_cast<double>(options_.cpu_ns() - before) * 1e-9;
  ration->taken(seconds, cost_s);
  cost_s_ += cost_s;
}

Reading Sampler::take(double seconds, bool last) {
  Reading reading;
  reading.seconds = seconds;
  const auto wanted = [&](const Ration& ration, double expected_s) {
    return last ? ration.affordable(seconds, expected_s) : ration.due(seconds, expected_s);
  };
  std::vector<ProcessStat> alive;
  const bool discover = options_.children && wanted(discover_, 0);
  if (discover) timed(&discover_, seconds, [&] { alive = tree_.look(true); });
  timed(&plain_, seconds, [&] {
    if (!discover) alive = tree_.look(false);
    for (const ProcessStat& stat : alive) {
      ProcessReading process = read_process(options_.root, stat);
      if (is_unread(process) && is_ending(options_.root, process)) continue;
      reading.processes.push_back(std::move(process));
    }
  });
  if (!reading.processes.empty()) {
    // An explicit interval, and files named by the user, are honoured whatever they cost.
    const bool asked = options_.interval_s > 0 && (last || files_.gap_passed(seconds));
    const bool named = last && !options_.watch_files.empty();
    if (asked || named || wanted(files_, walk_s(reading))) {
      timed(&files_, seconds, [&] { take_files(&reading); });
    } else if (wanted(pss_, walk_s(reading))) {
      timed(&pss_, seconds, [&] { take_pss(&reading); });
    }
  }
  if (reading.processes.empty() && last && !options_.watch_files.empty()) {
    take_files(&reading);  // the page cache outlives the processes
  }
  if (wanted(group_, 0) && !tree_.ended()) {
    const int pid = reading.processes.empty() ? tree_.root_pid() : reading.processes.front().pid;
    timed(&group_, seconds, [&] {
      GroupReading group = read_group(options_.root, pid);
      if (group.usage.value || read_stat(options_.root, pid)) reading.group = std::move(group);
    });
  }
  return reading;
}

double Sampler::wait_s(double seconds) const {
  return options_.interval_s > 0 ? options_.interval_s : plain_.wait_s(seconds);
}

// It is not worth reporting either why the PSS of a process that has just ended is unknown.
void Sampler::forgive_ending(ProcessReading* process) const {
  if (process->pss.value || !is_ending(options_.root, *process)) return;
  process->pss = Figure::unknown(kNotAsked);
}

void Sampler::take_pss(Reading* reading) const {
  for (ProcessReading& process : reading->processes) {
    process.pss = read_pss(options_.root, process.pid);
    forgive_ending(&process);
  }
}

void Sampler::take_files(Reading* reading) const {
  std::vector<int> pids;
  for (const ProcessReading& process : reading->processes) pids.push_back(process.pid);
  FilesReading files = read_files(options_.root, pids, options_.watch_files);
  bool one = false;
  for (ProcessReading& process : reading->processes) {
    process.pss = files.pss[process.pid];
    one = one || process.pss.value;
    forgive_ending(&process);
  }
  const auto not_asked = [](const ProcessReading& p) { return p.pss.why == kNotAsked; };
  if (!one && std::ranges::all_of(reading->processes, not_asked)) {
    if (options_.watch_files.empty()) return;  // no process was left to ask
    for (FileReading& file : files.files) {    // watched files: which process maps them is unknown
      if (!file.mapped.value) file.mapped = file.pss = Figure::unknown(kNotAsked);
    }
  }
  reading->files = std::move(files.files);
}

}  // namespace lowtide
