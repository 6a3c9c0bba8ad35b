#include "meter/thinned.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lowtide {
namespace {

std::uint64_t resident(const Reading& reading) {
  std::uint64_t bytes = 0;
  for (const ProcessReading& process : reading.processes) {
    bytes += process.rss_alone.value_or(0);
    for (const Figure* const part : {&process.anon, &process.file, &process.shmem}) {
      bytes += part->value.value_or(0);
    }
  }
  return bytes;
}

const ProcessReading* find(const Reading& reading, const ProcessReading& process) {
  const auto same = std::find_if(
      reading.processes.begin(), reading.processes.end(), [&process](const ProcessReading& other) {
        return other.pid == process.pid && other.start_ticks == process.start_ticks;
      });
  return same == reading.processes.end() ? nullptr : &*same;
}

Reading one_of(Reading earlier, Reading later) {
  const bool take_earlier = resident(earlier) > resident(later);
  Reading& kept = take_earlier ? earlier : later;
  Reading& other = take_earlier ? later : earlier;
  if (!kept.files) kept.files = std::move(other.files);
  if (!kept.group) kept.group = std::move(other.group);
  for (ProcessReading& process : kept.processes) {
    if (process.pss.value) continue;
    const ProcessReading* const same = find(other, process);
    if (same != nullptr && same->pss.value) process.pss = same->pss;
  }
  return std::move(kept);
}

}  // namespace

std::optional<Reading> Thinned::add(Reading reading) {
  const double now = reading.seconds;
  Reading next = held_ ? one_of(std::move(*held_), std::move(reading)) : std::move(reading);
  held_.reset();
  const double gap_s = now / static_cast<double>(kMost);
  if (!kept_.empty() && now - kept_.back().seconds < gap_s) {
    held_ = std::move(next);
    return std::nullopt;
  }
  keep(next);
  return next;
}

std::optional<Reading> Thinned::flush() {
  if (held_) keep(*held_);
  return std::exchange(held_, std::nullopt);
}

std::vector<Reading> Thinned::readings() const {
  std::vector<Reading> all = kept_;
  if (held_) all.push_back(*held_);
  return all;
}

void Thinned::keep(const Reading& reading) {
  if (kept_.size() == kMost) {
    std::vector<Reading> half{
        std::move(kept_[0])};  // always kept, because growth is measured from the first
    for (std::size_t i = 1; i + 1 < kept_.size(); i += 2) {
      half.push_back(one_of(std::move(kept_[i]), std::move(kept_[i + 1])));
    }
    if (kept_.size() % 2 == 0) half.push_back(std::move(kept_.back()));
    kept_ = std::move(half);
  }
  kept_.push_back(reading);
}

}  // namespace lowtide
