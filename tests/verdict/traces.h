// traces.h - traces of programs as they behave: leaks, and what is often taken for one. Each is
// made from a seed, which decides its length, its sizes, its noise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

inline constexpr double kMiB = 1 << 20;

inline Figure figure_of(double bytes) {
  return Figure::known(static_cast<std::uint64_t>(std::max(0.0, bytes)) / 4096 * 4096);
}

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : bits_(seed * 7919 + 17) {}
  double between(double low, double high) {
    return low + (high - low) * std::generate_canonical<double, 53>(bits_);
  }
  double normal() {  // Box and Muller, so that every library gives the same
    const double radius = std::sqrt(-2 * std::log(1 - between(0, 1)));
    return radius * std::cos(2 * std::numbers::pi * between(0, 1));
  }

 private:
  std::mt19937_64 bits_;
};

inline ProcessReading process_of(int pid, double heap, double file = 30 * kMiB,
                                 double tables = kMiB) {
  ProcessReading process;
  process.pid = pid;
  process.parent = pid == 100 ? 1 : 100;
  process.start_ticks = 5000 + static_cast<std::uint64_t>(pid);
  process.name = "python";
  process.anon = figure_of(heap);
  process.file = figure_of(file);
  process.shmem = Figure::known(0);
  process.page_tables = figure_of(tables);
  process.swap = Figure::known(0);
  process.pss = Figure::unknown("not asked now");
  process.minor_faults = process.major_faults = Figure::known(1);
  process.disk_bytes = process.asked_bytes = Figure::known(0);
  process.threads = Figure::known(1);
  return process;
}

inline FileReading file_of(const std::string& path, double mapped, double cached, double size) {
  return {.path = path,
          .deleted = false,
          .device = 1,
          .inode = 2,
          .size = figure_of(size),
          .mapped = figure_of(mapped),
          .pss = figure_of(mapped),
          .cached = figure_of(cached)};
}

// A program seen in `count` readings; part goes from 0 to 1. Intervals are uneven, as the sampler's
// are.
struct Program {
  double seconds = 60;
  int count = 400;
  Chance chance;

  explicit Program(std::uint64_t seed) : chance(seed) {
    seconds = std::exp(chance.between(std::log(5.0), std::log(3600.0)));
    count = static_cast<int>(chance.between(80, 900));
  }

  Trace make(const std::function<void(double part, Reading& reading)>& fill) {
    Trace trace;
    trace.command = {"python", "train.py"};
    trace.root_pid = 100;
    trace.started_unix_ms = 1790000000000;
    trace.machine = "Linux 6.18, 2 cores, 24 GiB";
    for (int i = 0; i < count; ++i) {
      const double part = (i + chance.between(0, 0.8)) / count;
      Reading reading;
      reading.seconds = part * seconds;
      fill(part, reading);
      trace.readings.push_back(std::move(reading));
    }
    trace.ending = Ending{seconds, 0, 0.001 * seconds};
    return trace;
  }

  // One process whose heap is `level` MiB with noise of `noise` MiB; an import at the start.
  Trace heap(double noise, const std::function<double(double part)>& level) {
    return make([&, noise](double part, Reading& reading) {
      const double import = std::min(1.0, part / 0.02);
      const double bytes = (import * level(part) + noise * chance.normal()) * kMiB;
      reading.processes.push_back(process_of(100, bytes));
    });
  }
};

struct Shape {
  std::string name;
  Trace (*make)(std::uint64_t seed);
};

inline Trace flat_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(20, 5000);
  return run.heap(run.chance.between(0, base / 20), [&](double) { return base; });
}

inline Trace warm_up_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500), rise = run.chance.between(50, 2000);
  const double time = run.chance.between(0.02, 0.25);
  return run.heap(run.chance.between(0, rise / 30),
                  [=](double part) { return base + rise * (1 - std::exp(-part / time)); });
}

// The warm-up ends with a corner: a cache that is full.
inline Trace full_cache_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500), rise = run.chance.between(50, 2000);
  const double full = run.chance.between(0.1, 0.6);
  return run.heap(run.chance.between(0, rise / 30),
                  [=](double part) { return base + rise * std::min(1.0, part / full); });
}

inline Trace periodic_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500), rise = run.chance.between(20, 2000);
  const double cycles = run.chance.between(2.5, 40), phase = run.chance.between(0, 6.28);
  const bool square = run.chance.between(0, 1) < 0.5;
  return run.heap(run.chance.between(0, rise / 20), [=](double part) {
    const double wave = std::sin(2 * std::numbers::pi * cycles * part + phase);
    return base + rise * (square ? (wave > 0 ? 1.0 : 0.0) : (1 + wave) / 2);
  });
}

// A collector that lets garbage grow and frees all of it. `floor_rise` MiB over the run.
inline Trace saw_tooth(std::uint64_t seed, double floor_rise) {
  Program run(seed);
  const double base = run.chance.between(50, 500), tooth = run.chance.between(20, 400);
  const double cycles = run.chance.between(3, 60), phase = run.chance.between(0, 1);
  return run.heap(run.chance.between(0, tooth / 30), [=](double part) {
    const double at = cycles * part + phase;
    return base + floor_rise * part + tooth * (at - std::floor(at));
  });
}
inline Trace saw_tooth_trace(std::uint64_t seed) {
  return saw_tooth(seed, 0);
}

inline Trace steps_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500);
  std::vector<std::pair<double, double>> steps;  // when, MiB
  const int count = static_cast<int>(run.chance.between(1, 4));
  for (int i = 0; i < count; ++i) {
    steps.emplace_back(run.chance.between(0, 1), run.chance.between(20, 500));
  }
  return run.heap(run.chance.between(0, 2), [=](double part) {
    double level = base;
    for (const auto& [when, size] : steps) level += part > when ? size : 0;
    return level;
  });
}

inline Trace shrinking_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(500, 1000), fall = run.chance.between(50, 450);
  return run.heap(run.chance.between(0, fall / 10),
                  [=](double part) { return base - fall * part; });
}

// A parent and short-lived children that share its heap until they write.
inline Trace fork_server_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 1000);
  const int most = static_cast<int>(run.chance.between(2, 12));
  int next = 101;
  return run.make([&](double, Reading& reading) {
    const int children = static_cast<int>(run.chance.between(0, most + 0.99));
    for (int i = -1; i < children; ++i) {
      reading.processes.push_back(process_of(i < 0 ? 100 : next++, base * kMiB));
      reading.processes.back().pss = figure_of((base + 30) * kMiB / (children + 1));
    }
  });
}

inline Trace leak_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500), rise = run.chance.between(50, 4000);
  return run.heap(run.chance.between(0, rise / 30),
                  [=](double part) { return base + rise * part; });
}

// Noise as large as a fifteenth of all that leaks.
inline Trace noisy_leak_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(500, 2000), rise = run.chance.between(40, 200);
  return run.heap(rise / 15, [=](double part) { return base + rise * part; });
}

inline Trace saw_tooth_leak_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500), tooth = run.chance.between(20, 200);
  const double cycles = run.chance.between(12, 60), rise = tooth * run.chance.between(1.5, 8);
  return run.heap(tooth / 30, [=](double part) {
    return base + rise * part + tooth * (cycles * part - std::floor(cycles * part));
  });
}

// Many small steps: a buffer that doubles never, a list that grows by blocks.
inline Trace stairs_leak_trace(std::uint64_t seed) {
  Program run(seed);
  const double base = run.chance.between(50, 500), rise = run.chance.between(100, 2000);
  const double steps = run.chance.between(20, 100);
  return run.heap(rise / 100,
                  [=](double part) { return base + rise * std::floor(part * steps) / steps; });
}

}  // namespace lowtide
