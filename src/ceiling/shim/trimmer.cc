#include "ceiling/shim/trimmer.h"

#include <new>

namespace lowtide::ceiling {

namespace {

constexpr std::uint64_t kCountEveryNs = 100'000'000;
constexpr std::uint64_t kCountShare = 50;      // counting takes at most a fiftieth of the time
constexpr std::uint64_t kFallBytes = 1 << 20;  // statm lags by less than this on small machines
constexpr unsigned kFutileTrims = 4;           // in a row: a fast reader can undo one or two
constexpr std::uint64_t kShortestRestNs = 20'000'000;
constexpr std::uint64_t kLongestRestNs = 1'000'000'000;
constexpr int kPageOut = 21;  // MADV_PAGEOUT

bare::Range overlap(bare::Range a, bare::Range b) {
  const bare::Range both{a.start > b.start ? a.start : b.start, a.end < b.end ? a.end : b.end};
  return both.start < both.end ? both : bare::Range{};
}

// How a stretch of pages is released. Sets `refused` if the kernel keeps them (locked pages).
bool page_out(void* refused, bare::Range stretch) {
  if (bare::advise(stretch, kPageOut) < 0) *static_cast<bool*>(refused) = true;
  return true;
}
bool let_go(void* refused, bare::Range stretch) {
  if (bare::advise(stretch, MADV_DONTNEED) < 0) *static_cast<bool*>(refused) = true;
  return true;
}
bool page_out_and_let_go(void* refused, bare::Range stretch) {
  bool ignored = false;
  return page_out(&ignored, stretch) && let_go(refused, stretch);
}

}  // namespace

bool Trimmer::open() {
  return bare::leave_descriptors() && maps_.open();
}

// Compared with what the kernel has mapped there now, because a map can change past our hooks. The
// device is learnt from the first comparison: on btrfs and overlayfs it differs from stat's.
bool Trimmer::ours(Entry& entry, const bare::Area& area) {
  if (area.inode != entry.inode || area.shared != (entry.kind == Kind::shared)) return false;
  if (!entry.known) {
    entry.known = true;
    entry.device = area.device;
  }
  return area.device == entry.device;
}

std::uint64_t Trimmer::count(Shim::Held& held) {
  const std::uint64_t start = bare::now_ns();
  std::uint64_t bytes = 0;
  std::uint64_t stretches = 0;
  mapped_bytes_ = 0;
  maps_.rewind();
  for (std::size_t i = 0; i < held.table().size(); ++i) {
    const Entry& entry = held.table()[i];
    bytes += maps_.resident(entry.range, entry.kind == Kind::shared, stretches);
    mapped_bytes_ += entry.range.bytes();
  }
  // The few pages that are left after a trim do not show how the program reads.
  if (bytes >= shim_.settings().limit_bytes / 4) churn_.counted(bytes, stretches);
  const std::uint64_t shared = maps_.shared_bytes();
  other_bytes_ = shared > bytes ? shared - bytes : 0;
  const std::uint64_t cost_ns = bare::now_ns() - start;
  next_count_ns_ =
      start + (cost_ns < kCountEveryNs / kCountShare ? kCountEveryNs : cost_ns * kCountShare);
  return bytes;
}

std::uint64_t Trimmer::others_bytes() {
  if (!shim_.settings().tree) return 0;
  const std::uint64_t sum = shim_.sum().bytes;
  const std::uint64_t own = shim_.slot().resident_bytes.load();
  return sum > own ? sum - own : 0;
}

void Trimmer::publish(std::uint64_t bytes) {
  resident_bytes_ = bytes;
  shim_.slot().resident_bytes.store(bytes);
}

std::uint64_t Trimmer::look() {
  const std::uint64_t shared = maps_.shared_bytes();
  const bool fell = shared + kFallBytes < last_shared_;
  last_shared_ = shared;
  publish(shared > other_bytes_ ? shared - other_bytes_ : 0);
  // The estimate is wrong once pages of other maps have come or gone.
  if (fell || bare::now_ns() >= next_count_ns_) {
    Shim::Held held(shim_);
    if (!held) return 0;
    publish(count(held));
    raise_to(shim_.page().peak_bytes, resident_bytes_ + others_bytes());
  }
  const std::uint64_t sum_bytes = resident_bytes_ + others_bytes();
  pace_.seen(sum_bytes, bare::now_ns());
  if (sum_bytes >= mark_.bytes() && holds_its_share()) trim();
  const std::uint64_t sleep_ns = pace_.sleep_ns(mark_.bytes(), mark_.late_bytes());
  return sleep_ns > rest_ns_ ? sleep_ns : rest_ns_;
}

// In a tree, the processes that hold the average or more release their pages: there is always one.
bool Trimmer::holds_its_share() {
  if (resident_bytes_ == 0 || !shim_.settings().tree) return resident_bytes_ != 0;
  const Shim::Sum sum = shim_.sum();
  return sum.processes == 0 || resident_bytes_ >= sum.bytes / sum.processes;
}

void Trimmer::trim() {
  const std::uint64_t start = bare::now_ns();
  const std::uint64_t shared_before = last_shared_;
  kept_bytes_ = 0;
  std::uint64_t after = 0;
  {
    Shim::Held held(shim_);
    if (!held) return;
    maps_.rewind();
    std::uintptr_t at = 0;
    for (std::size_t i = held.table().first_after(at); i < held.table().size();
         i = held.table().first_after(at)) {
      at = held.table()[i].range.end;
      if (!held.table()[i].aside) trim_entry(held, held.table()[i]);
    }
    after = count(held);
  }
  // What count() has just read from statm; growth is measured from here.
  last_shared_ = after + other_bytes_;
  const std::uint64_t released = shared_before > last_shared_ ? shared_before - last_shared_ : 0;
  const std::uint64_t before = after + released;  // known exactly only now
  raise_to(shim_.page().peak_bytes, before + others_bytes());
  shim_.page().trims.fetch_add(1);
  shim_.page().released_bytes.fetch_add(released);
  publish(after);
  rest_after(before, after);
  const bool wanted_back = churn_.trimmed(released, mapped_bytes_, start);
  if (wanted_back || (futile_ >= kFutileTrims && kept_bytes_ < after / 2)) {
    shim_.slot().state.fetch_or(Slot::kUndone);
    shim_.page().undone.fetch_add(1);
  }
  mark_.trimmed(pace_.last_bytes());
  pace_.released(after + others_bytes(), bare::now_ns());
}

// Trims that achieve nothing become rare: the kernel keeps the pages (locked, or of a private map),
// or the program has mapped them again before the trim is over.
void Trimmer::rest_after(std::uint64_t before, std::uint64_t after) {
  futile_ = after >= before - before / 8 ? futile_ + 1 : 0;
  rest_ns_ = 0;
  if (futile_ < kFutileTrims) return;
  const std::uint64_t kept = kept_bytes_ < after ? kept_bytes_ : after;
  if (kept >= shim_.settings().limit_bytes / 2) {
    raise_to(shim_.page().kept_bytes, kept);
    shim_.slot().state.fetch_or(Slot::kKept);
  }
  const unsigned doublings = futile_ - kFutileTrims;
  rest_ns_ = doublings < 6 ? kShortestRestNs << doublings : kLongestRestNs;
}

// Takes a copy, because the table may change under the entry. A part that no longer belongs to us,
// after a system call past the hooks, is removed from the table and not trimmed.
void Trimmer::trim_entry(Shim::Held& held, Entry entry) {
  std::uintptr_t at = entry.range.start;
  while (at < entry.range.end) {
    bare::Area area;
    if (!maps_.find(at, area, shim_.settings().drop_cache ? path_ : nullptr)) {
      area.range = {entry.range.end, entry.range.end};
    }
    const bare::Range range = overlap(area.range, {at, entry.range.end});
    const std::uintptr_t hole_end = range.bytes() == 0 ? entry.range.end : range.start;
    if (hole_end > at) {
      held.change([&](Table& table) {
        table.remove({at, hole_end});
        return true;
      });
    }
    if (range.bytes() == 0) return;
    if (ours(entry, area)) {
      release(held, entry, area, range);
    } else {
      held.change([&](Table& table) {
        table.remove(range);
        return true;
      });
    }
    at = range.end;
  }
}

void Trimmer::release(Shim::Held& held, const Entry& entry, const bare::Area& area,
                      bare::Range range) {
  const std::size_t index = held.table().first_after(range.start);
  if (index == held.table().size() || held.table()[index].range.start > range.start) {
    return;  // left out of the table: it was full when this part was split off
  }
  held.table()[index].known = true;
  held.table()[index].device = entry.device;
  // fadvise never evicts mapped pages, so with a path the release comes first and the cache after
  // it. Without one, MADV_PAGEOUT evicts through the map, while the pages are still in it.
  const bool by_name = shim_.settings().drop_cache && path_[0] != 0;
  const auto how = shim_.settings().drop_cache && !by_name ? &page_out_and_let_go : &let_go;
  bool refused = false;
  if (entry.kind == Kind::shared) {
    how(&refused, range);
  } else if (entry.kind == Kind::private_dirty || area.writable ||
             !release_clean(range, how, refused)) {
    held.table().make_writable(range);
    page_out_range(range);
    return;
  }
  if (refused) kept_bytes_ += resident_now(range);
  if (by_name) drop_cache(entry, area, range);
}

// For a private map that is not writable, as long as nothing was written to it. The program can
// write without a hook (a system call past libc, /proc/self/mem), so each slice is checked right
// before its release. False: there are copies, or the kernel cannot report them. A program that
// wrote once may write again between check and release, so from then on the kernel's reclaim is
// used.
bool Trimmer::release_clean(bare::Range range, bare::OwnMaps::Visit how, bool& refused) {
  constexpr std::uintptr_t kSliceBytes = 8 << 20;
  for (std::uintptr_t at = range.start; at < range.end; at += kSliceBytes) {
    const bare::Range slice = overlap({at, at + kSliceBytes}, range);
    if (maps_.written(slice)) return false;
    how(&refused, slice);
  }
  return true;
}

// The kernel's reclaim does not report what it kept. Pages that it took must be read from disk to
// come back, so whatever is resident afterwards was kept.
void Trimmer::page_out_range(bare::Range range) {
  const std::uint64_t before = resident_now(range);
  bool refused = false;
  // Copies that the program wrote would only go to swap.
  if (!maps_.written(range) || !maps_.visit_resident(range, &page_out, &refused)) {
    page_out(&refused, range);
  }
  const std::uint64_t after = resident_now(range);
  if (after >= before - before / 8) kept_bytes_ += after;
}

std::uint64_t Trimmer::resident_now(bare::Range range) {
  std::uint64_t bytes = 0;
  const auto add = [](void* sum, bare::Range stretch) {
    *static_cast<std::uint64_t*>(sum) += stretch.bytes();
    return true;
  };
  return maps_.visit_resident(range, add, &bytes) ? bytes : range.bytes();
}

// The path may name another file by now, so it is compared with the mapped one. Opened without
// blocking or side effects, in case it has become a pipe or a terminal.
void Trimmer::drop_cache(const Entry& entry, const bare::Area& area, bare::Range range) {
  const long fd = bare::open_file(path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return;
  struct stat told {};
  if (bare::stat_of(static_cast<int>(fd), &told) == 0 && told.st_ino == entry.inode &&
      told.st_dev == entry.stat_device) {
    bare::drop_cache(static_cast<int>(fd), area.offset_bytes + (range.start - area.range.start),
                     range.bytes());
  }
  bare::close_file(static_cast<int>(fd));
}

void* run_trimmer(void*) {
  bare::name_thread("lowtide-guard");
  bare::run_soon();
  // Static, because nothing here may allocate; reused when a forked child starts the thread again.
  alignas(Trimmer) static char storage[sizeof(Trimmer)];
  Trimmer* trimmer = new (storage) Trimmer(shim);
  if (!trimmer->open()) {
    shim.page().threads_refused.fetch_add(1);
    return nullptr;
  }
  while (shim.on()) {
    if (!shim.covers_any()) {
      shim.slot().resident_bytes.store(0);
      shim.wait_for_maps();
    }
    shim.rest(trimmer->look());
  }
  trimmer->close();
  return nullptr;
}

}  // namespace lowtide::ceiling
