#include "ceiling/shim/shim.h"

namespace lowtide::ceiling {

namespace {

// Used if guard's page cannot be opened: the limit still applies, but nothing is reported.
Page lonely_page;
Slot lonely_slot;

const char* setting_text(char** environment) {
  for (char** entry = environment; *entry != nullptr; ++entry) {
    const char* name = kSettingsVariable;
    const char* text = *entry;
    while (*name != 0 && *text == *name) {
      ++name;
      ++text;
    }
    if (*name == 0 && *text == '=') return text + 1;
  }
  return nullptr;
}

}  // namespace

constinit Shim shim;

void Shim::start(char** environment) {
  settings_ = parse_settings(setting_text(environment));
  if (settings_.limit_bytes == 0) return;
  // A filter that was set after guard started was made for this program's calls, not for ours: one
  // of ours could kill the program.
  const bool restricted = bare::filters() > settings_.filters;
  if (settings_.only_this) leave_environment(environment);
  if (restricted) return;
  pid_.store(bare::process_id());
  // Registered first, so that in a child it runs before every later handler of ours.
  bare::at_fork([] {
    if (shim.on()) shim.pid_.store(bare::process_id());
  });
  Page* const shared = open_page(settings_.page_path, settings_.page_number);
  page_ = shared != nullptr ? shared : &lonely_page;
  claim_slot();
  on_.store(true, std::memory_order_release);
}

void Shim::claim_slot() {
  const int pid = pid_.load();
  page_->processes.fetch_add(1);
  slot_ = &lonely_slot;
  for (std::size_t i = 0; i < Page::kSlots; ++i) {
    Slot& slot = page_->slots[i];
    std::int32_t holder = slot.pid.load();
    // Guard looks for slot 0, the program's own, at the end. Slots of ended or killed processes are
    // reused; a process that called exec finds its own pid and keeps its slot.
    const bool left = i != 0 && holder != 0 &&
                      ((slot.state.load() & Slot::kEnded) != 0 || bare::process_gone(holder));
    if (holder != 0 && holder != pid && !left) continue;
    if (holder != pid && !slot.pid.compare_exchange_strong(holder, pid)) continue;
    slot.state.store(0);
    slot.resident_bytes.store(0);
    raise_to(page_->slots_used, i + 1);
    slot_ = &slot;
    return;
  }
}

// `inside_` is counted before on() is read: step_back() clears on_ first and then waits for
// inside_, so it cannot miss a thread that is about to take the lock. Signals are blocked before
// the lock is taken; see lock.h.
Shim::Held::Held(Shim& whose) : inside_(whose), shim_(whose), held_(whose.on()) {
  if (!held_) return;
  signals_ = bare::block_signals();
  shim_.lock_.take(&Shim::forked_unseen);
}

Shim::Held::~Held() {
  if (!held_) return;
  const std::uint64_t entries = shim_.on() ? shim_.table_.size() : 0;
  shim_.entries_.store(entries, std::memory_order_release);
  shim_.lock_.give();
  bare::restore_signals(signals_);
}

void Shim::cover(const Entry& entry) {
  const Inside inside(*this);
  bool inserted = false;
  {
    Held held(*this);
    if (!held) return;
    inserted = held.change([&](Table& table) { return table.insert(entry); });
  }
  if (!inserted) {
    page_->maps_left_out.fetch_add(1);
    return;
  }
  page_->maps.fetch_add(1);
  // Incremented before the wake-up: the trimmer reads it before it decides to sleep.
  wake_.fetch_add(1, std::memory_order_release);
  bare::wake_word(wake_);
  if (on()) start_trimmer();
}

void Shim::uncover(bare::Range range) {
  Held held(*this);
  if (!held) return;
  held.change([&](Table& table) {
    table.remove(range);
    return true;
  });
}

bool Shim::set_aside(bare::Range range) {
  Held held(*this);
  return held && held.change([&](Table& table) { return table.set_aside(range); });
}

void Shim::put_back(bare::Range range) {
  Held held(*this);
  if (held) held.table().put_back(range);
}

void Shim::drop_aside(bare::Range range) {
  Held held(*this);
  if (!held) return;
  held.change([&](Table& table) {
    table.drop_aside(range);
    return true;
  });
}

void Shim::make_writable(bare::Range range) {
  Held held(*this);
  if (held) held.table().make_writable(range);
}

// Between vfork and exec the memory is the parent's, whose trimmer must keep running. The changed
// process id shows it.
bool Shim::step_back() {
  if (!on() || bare::process_id() != pid_.load()) return false;
  {
    Held held(*this);
    if (!held) return false;
    on_.store(false);
  }
  constexpr std::uint64_t kLookNs = 1'000'000;
  constexpr int kLooks = 1000;  // a hook may be in a slow call, but is not waited for indefinitely
  for (int i = 0; i < kLooks && inside_.load() != 0; ++i) bare::sleep_ns(kLookNs);
  end_trimmer();
  slot_->resident_bytes.store(0);
  return true;
}

void Shim::come_again() {
  on_.store(true);
  {
    Held held(*this);  // its destructor publishes the number of entries
  }
  if (covers_any()) start_trimmer();
}

// The filter is in force: from here on any system call of ours might kill the program.
void Shim::stay_back() {
  slot_->state.fetch_or(Slot::kEnded);
  page_->sandboxed.fetch_add(1);
}

void Shim::end() {
  if (!on() || bare::process_id() != pid_.load()) return;
  slot_->resident_bytes.store(0);
  slot_->state.fetch_or(Slot::kEnded);
}

Shim::Sum Shim::sum() {
  Sum sum;
  const std::uint64_t used = page_->slots_used.load();
  for (std::uint64_t i = 0; i < used && i < Page::kSlots; ++i) {
    Slot& slot = page_->slots[i];
    const std::uint64_t bytes = slot.resident_bytes.load();
    if (bytes == 0) continue;
    if (&slot != slot_ && bare::process_gone(slot.pid.load())) {
      slot.resident_bytes.store(0);  // it was killed and could not reset this itself
      continue;
    }
    sum.bytes += bytes;
    ++sum.processes;
  }
  return sum;
}

void Shim::wait_for_maps() {
  const std::uint32_t seen = wake_.load(std::memory_order_acquire);
  if (!covers_any() && on()) bare::wait_word(wake_, seen, 0);
}

void Shim::rest(std::uint64_t time_ns) {
  const std::uint32_t seen = stop_.load(std::memory_order_acquire);
  if (on()) bare::wait_word(stop_, seen, time_ns > 0 ? time_ns : 1);  // 0 would be no time limit
}

// Only maps of files lead here, so the caller is not inside malloc and a thread may be started. The
// fork handler is registered only now: handlers of allocators that were registered earlier then run
// before ours in the child, and starting a thread there can allocate.
void Shim::start_trimmer() {
  const int pid = bare::process_id();
  int seen = trimmer_pid_.load();
  if (seen == pid || !trimmer_pid_.compare_exchange_strong(seen, pid)) return;
  if (!fork_told_.exchange(true)) bare::at_fork([] { shim.forked(); });
  if (bare::start_thread(&run_trimmer, &trimmer_)) {
    trimmer_runs_.store(true);
  } else {
    page_->threads_refused.fetch_add(1);
  }
}

void Shim::end_trimmer() {
  stop_.fetch_add(1, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_release);  // it may sleep on either word
  bare::wake_word(stop_);
  bare::wake_word(wake_);
  if (trimmer_runs_.exchange(false)) bare::join_thread(trimmer_);
  trimmer_pid_.store(0);
}

// The child has only the thread that forked. Any other thread may have held the lock, been inside a
// hook or been changing the table.
void Shim::forked() {
  lock_.reset();
  inside_.store(0);
  trimmer_runs_.store(false);
  if (changing_.exchange(false)) {  // a change was in progress, so the table cannot be trusted
    page_->maps_left_out.fetch_add(table_.size());
    table_.clear();
  }
  table_.put_back({0, ~std::uintptr_t{0}});  // set aside by calls of threads that do not exist here
  if (settings_.only_this) {
    table_.clear();
    on_.store(false, std::memory_order_release);
  }
  entries_.store(on() ? table_.size() : 0, std::memory_order_release);
  if (!on()) return;
  claim_slot();
  if (table_.size() != 0) start_trimmer();
}

// In a child that was not made by fork() (a bare clone), the fork handlers did not run.
bool Shim::forked_unseen() {
  if (bare::process_id() == shim.pid_.load()) return false;
  shim.pid_.store(bare::process_id());
  if (shim.changing_.exchange(false)) shim.table_.clear();
  shim.claim_slot();
  return true;
}

}  // namespace lowtide::ceiling
