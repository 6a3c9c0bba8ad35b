#include "verdict/lives.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/quote.h"
#include "meter/sums.h"

namespace lowtide {
namespace {

constexpr double kLastingPart = 1.0 / 3;  // a process that lived for this part of the run is judged
constexpr double kStartUpPart = 0.1;      // of a life; ignored: every program grows while it starts
constexpr double kTearDownPart = 0.1;     // of a life; at most this much is ignored at its end
constexpr double kWindDownPart = 0.25;    // of the run; at most this much is ignored at its end

// One process in one reading, if it could be read.
struct SeenAt {
  std::size_t reading = 0;
  double seconds = 0;
  std::uint64_t rss = 0;
  std::optional<std::uint64_t> heap;
};

std::optional<std::uint64_t> heap_of(const ProcessReading& process) {
  std::optional<std::uint64_t> heap = process.anon.value;
  if (heap) add_known(heap, process.swap.value);
  return heap;
}

std::size_t before_its_fall(const std::vector<SeenAt>& seen, const Life& life) {
  std::size_t at = seen.size() - 1;
  if (!life.ended) return at;
  const double earliest = life.end_s - kTearDownPart * (life.end_s - life.begin_s);
  while (at > 0 && seen[at - 1].seconds >= earliest && seen[at - 1].rss >= seen[at].rss) --at;
  // Equal values are not part of the fall.
  while (at + 1 < seen.size() && seen[at + 1].rss == seen[at].rss) ++at;
  return at;
}

void complete(Life* life, const std::vector<SeenAt>& seen, double run_s) {
  const double length_s = life->end_s - life->begin_s;
  life->lasting = length_s >= kLastingPart * run_s;
  for (const SeenAt& one : seen) {
    life->rss.push_back({one.seconds, static_cast<double>(one.rss)});
  }
  if (seen.empty()) return;
  const std::size_t whole = before_its_fall(seen, *life);
  life->last_whole = seen[whole].reading;
  for (std::size_t i = 0; i <= whole; ++i) {
    if (seen[i].seconds < life->begin_s + kStartUpPart * length_s) continue;
    life->heap.see(seen[i].seconds, seen[i].heap);
  }
  if (!life->lasting) return;
  life->heap_trend = trend_of(life->heap.points);
  life->leaks = is_leak(life->heap_trend, life->heap.peak);
}

}  // namespace

std::vector<Life> lives_of(const Trace& trace) {
  std::vector<Life> lives;
  std::vector<std::vector<SeenAt>> seen;
  std::map<std::pair<int, std::uint64_t>, std::size_t> numbers;
  for (std::size_t i = 0; i < trace.readings.size(); ++i) {
    const Reading& reading = trace.readings[i];
    for (const ProcessReading& process : reading.processes) {
      const auto [number, fresh] =
          numbers.try_emplace({process.pid, process.start_ticks}, lives.size());
      if (fresh) {
        Life& born = lives.emplace_back();
        born.pid = process.pid;
        born.start_ticks = process.start_ticks;
        born.begin_s = reading.seconds;
        born.last_whole = i;
        seen.emplace_back();
      }
      Life& life = lives[number->second];
      life.parent = process.parent;
      life.name = process.name;
      life.end_s = reading.seconds;
      if (const auto rss = rss_of(process)) {
        seen[number->second].push_back({i, reading.seconds, *rss, heap_of(process)});
      }
    }
  }
  if (trace.readings.empty()) return lives;
  const double last_s = trace.readings.back().seconds;
  const double run_s = last_s - trace.readings.front().seconds;
  const bool all_ended = trace.ending && trace.ending->exit_code;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    lives[i].ended = all_ended || lives[i].end_s < last_s;
    complete(&lives[i], seen[i], run_s);
  }
  return lives;
}

std::size_t last_whole(const Trace& trace, const std::vector<Life>& lives) {
  const std::size_t last = trace.readings.size() - 1;
  const double last_s = trace.readings[last].seconds;
  const double earliest = last_s - kWindDownPart * (last_s - trace.readings.front().seconds);
  std::vector<std::size_t> ends;
  for (const Life& life : lives) {
    if (life.lasting && life.ended && life.end_s >= earliest) ends.push_back(life.last_whole);
  }
  std::ranges::sort(ends);
  const auto rss_at = [&](std::size_t i) { return sums_of(trace.readings[i]).rss.value_or(0); };
  std::vector<std::uint64_t> later(trace.readings.size(), 0);  // the maximum of all later readings
  const std::size_t lowest = ends.empty() ? last : std::min(ends.front(), last);
  for (std::size_t i = last; i-- > lowest;) later[i] = std::max(later[i + 1], rss_at(i + 1));
  for (const std::size_t end : ends) {
    if (later[end] <= rss_at(end)) return std::max(end, first_settled(trace));
  }
  return last;
}

std::string process_text(const std::string& name, int pid) {
  const std::string number = "pid " + std::to_string(pid);
  if (name.empty()) return pid == 0 ? "" : number;
  return shown(name) + " (" + number + ")";
}

}  // namespace lowtide
