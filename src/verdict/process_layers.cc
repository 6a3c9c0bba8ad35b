#include <algorithm>
#include <map>
#include <utility>

#include "meter/sums.h"
#include "verdict/series_parts.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostProcesses = 6;

using Key = std::pair<int, std::uint64_t>;  // pid and start time: a reused pid is another process

std::optional<std::uint64_t> held_by(const ProcessReading& process) {
  std::optional<std::uint64_t> held = rss_of(process);
  if (held) add_known(held, process.page_tables.value);
  return held;
}

struct SeenProcess {
  std::string name;
  std::size_t number = 0;  // in order of appearance
  std::uint64_t peak = 0;
};

std::map<Key, SeenProcess> seen_in(const Trace& trace) {
  std::map<Key, SeenProcess> seen;
  for (const Reading& reading : trace.readings) {
    for (const ProcessReading& process : reading.processes) {
      const Key key{process.pid, process.start_ticks};
      SeenProcess& one =
          seen.try_emplace(key, SeenProcess{.name = {}, .number = seen.size()}).first->second;
      one.name = process.name + " (pid " + std::to_string(process.pid) + ")";
      one.peak = std::max(one.peak, held_by(process).value_or(0));
    }
  }
  return seen;
}

// The largest processes, in order of appearance.
std::vector<Key> shown_of(const std::map<Key, SeenProcess>& seen) {
  std::vector<Key> keys;
  for (const auto& [key, one] : seen) keys.push_back(key);
  std::ranges::stable_sort(keys, std::ranges::greater{},
                           [&](const Key& key) { return seen.at(key).peak; });
  if (keys.size() > kMostProcesses) keys.resize(kMostProcesses);
  std::ranges::sort(keys, {}, [&](const Key& key) { return seen.at(key).number; });
  return keys;
}

void add_or_forget(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  if (sum && part) {
    add_known(sum, part);
  } else {
    sum.reset();
  }
}

}  // namespace

std::vector<Layer> process_layers(const Trace& trace) {
  const std::map<Key, SeenProcess> seen = seen_in(trace);
  const Column nothing(trace.readings.size(), std::uint64_t{0});
  std::vector<Layer> layers;
  std::map<Key, std::size_t> layer_of;
  for (const Key& key : shown_of(seen)) {
    layer_of[key] = layers.size();
    layers.push_back({LayerKind::process, seen.at(key).name, nothing});
  }
  const std::size_t rest = seen.size() - layers.size();
  const std::size_t others = layers.size();
  if (rest > 0) {
    layers.push_back({LayerKind::others,
                      std::to_string(rest) + (rest == 1 ? " other process" : " other processes"),
                      nothing});
  }
  for (std::size_t row = 0; row < trace.readings.size(); ++row) {
    for (const ProcessReading& process : trace.readings[row].processes) {
      const auto shown = layer_of.find({process.pid, process.start_ticks});
      const std::size_t number = shown == layer_of.end() ? others : shown->second;
      add_or_forget(layers[number].bytes[row], held_by(process));
    }
  }
  return layers;
}

}  // namespace lowtide
