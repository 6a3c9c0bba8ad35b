// pictures.h - traces with everything that a report draws, for the tests of the drawing.
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "verdict/traces.h"

namespace lowtide {

inline Trace empty_picture() {
  Trace trace;
  trace.command = {"python", "train.py", "--epochs", "3"};
  trace.root_pid = 100;
  trace.started_unix_ms = 1790000000000;
  trace.machine = "Linux 6.18, 2 cores, 24 GiB";
  return trace;
}

inline GroupReading group_of(double usage, double limit) {
  GroupReading group;
  group.path = "/sys/fs/cgroup/job";
  group.version = 2;
  group.usage = figure_of(usage);
  group.anon = group.inactive_file = group.active_file = Figure::unknown("not asked now");
  group.working_set = figure_of(usage / 2);
  group.limit = limit > 0 ? figure_of(limit) : Figure::unknown("no limit");
  group.limit_hits = group.oom_kills = Figure::known(0);
  return group;
}

// np.memmap over a file of 2 GiB: mapped pages and page cache grow together, nothing leaks. Files
// are looked at in every tenth reading.
inline Trace scan_picture(int count = 300) {
  Trace trace = empty_picture();
  for (int i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / count, moved = std::pow(part, 0.8);
    Reading reading;
    reading.seconds = 60 * part;
    reading.processes.push_back(process_of(100, (120 + 6 * std::sin(40 * part)) * kMiB,
                                           (40 + 2048 * moved) * kMiB, (2 + 4 * moved) * kMiB));
    reading.processes.back().shmem = figure_of(24 * kMiB);
    reading.processes.back().disk_bytes = figure_of(2048 * moved * kMiB);
    if (i % 10 == 0) {
      reading.files = {
          file_of("/data/shards/train.bin", 2048 * moved * kMiB, 2048 * moved * kMiB, 4096 * kMiB),
          file_of("/usr/lib/libpython3.12.so", 24 * kMiB, 30 * kMiB, 32 * kMiB),
          file_of("/usr/lib/libc.so.6", 12 * kMiB, 16 * kMiB, 16 * kMiB)};
      reading.group = group_of((150 + 2100 * moved) * kMiB, 3072 * kMiB);
    }
    trace.readings.push_back(std::move(reading));
  }
  trace.marks = {{0.5, "import done"}, {20, "epoch 1/3"}, {40, "epoch 2/3"}};
  trace.ending = Ending{60, 0, 0.21};
  return trace;
}

// An hour, five processes, ten files: the largest page that is promised.
inline Trace hour_picture(int count = 4000) {
  Trace trace = empty_picture();
  Chance chance(7);
  for (int i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / count;
    Reading reading;
    reading.seconds = 3600 * part;
    for (int child = 0; child < 5; ++child) {
      reading.processes.push_back(process_of(100 + child, chance.between(700, 900) * kMiB,
                                             chance.between(1000, 1400) * kMiB, 4 * kMiB));
      reading.processes.back().shmem = figure_of(chance.between(80, 120) * kMiB);
      reading.processes.back().disk_bytes = figure_of((9000 * part + child) * kMiB);
    }
    if (i % 5 == 0) {
      reading.files.emplace();
      for (int file = 0; file < 10; ++file) {
        const double mapped = chance.between(400, 800) * kMiB;
        reading.files->push_back(file_of("/data/shards/train-" + std::to_string(file) + ".bin",
                                         mapped, mapped * 1.2, 2048 * kMiB));
      }
      reading.group = group_of(9000 * kMiB, 24576 * kMiB);
    }
    trace.readings.push_back(std::move(reading));
  }
  for (int step = 0; step < 720; ++step) {
    trace.marks.push_back({5.0 * step, "step " + std::to_string(step * 100)});
  }
  trace.ending = Ending{3600, 0, 11.3};
  return trace;
}

inline ProcessReading process_unknown(int pid) {
  ProcessReading process = process_of(pid, 0);
  for (Figure* figure : {&process.anon, &process.file, &process.shmem, &process.page_tables,
                         &process.swap, &process.disk_bytes, &process.asked_bytes}) {
    *figure = Figure::unknown("no permission");
  }
  return process;
}

// Nothing could be seen between `from` and `to`, parts of the run.
inline Trace hole_picture(double from, double to) {
  Trace trace = scan_picture(100);
  for (Reading& reading : trace.readings) {
    if (reading.seconds < 60 * from || reading.seconds >= 60 * to) continue;
    reading.processes = {process_unknown(100)};
    if (!reading.files) continue;
    for (FileReading& file : *reading.files) {
      file.mapped = file.cached = file.size = Figure::unknown("no permission");
    }
  }
  return trace;
}

inline Trace one_reading_picture() {
  Trace trace = scan_picture(1);
  trace.readings.front().seconds = 0.004;
  trace.marks.clear();
  trace.ending = Ending{0.009, 139, 0.001};
  return trace;
}

// Names that would break out of text, attributes and scripts.
inline Trace hostile_picture() {
  Trace trace = scan_picture(40);
  trace.command = {"sh", "-c", "</title><script>alert(1)</script>", "a'b\"c&d"};
  trace.machine = "<b>machine</b>";
  for (Reading& reading : trace.readings) {
    if (!reading.files) continue;
    (*reading.files)[0].path = "/tmp/</script><script>alert(2)</script>.bin";
    (*reading.files)[1].path = "/tmp/\"onload='alert(3)' \n\xff\x01.bin";
    (*reading.files)[1].mapped = (*reading.files)[0].mapped;
  }
  trace.marks = {{1, "<img src=x onerror=alert(4)>"}, {2, "]]>--><!--"}};
  return trace;
}

}  // namespace lowtide
