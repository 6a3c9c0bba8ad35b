#include "ceiling/shim/shim.h"

namespace lowtide::ceiling {

namespace {

// Where guard's page cannot be opened: the ceiling holds, only nobody hears of it.
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
  pid_.store(bare::process_id());
  open_page();
  claim_slot();
  if (settings_.only_this) leave_environment(environment);
  on_.store(true, std::memory_order_release);
}

void Shim::open_page() {
  page_ = &lonely_page;
  const long fd = bare::open_file(settings_.page_path, O_RDWR);
  if (fd < 0) return;
  const long at =
      bare::map(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
  bare::close_file(static_cast<int>(fd));
  if (at > 0) page_ = reinterpret_cast<Page*>(at);
}

void Shim::claim_slot() {
  const int pid = pid_.load();
  page_->processes.fetch_add(1);
  slot_ = &lonely_slot;
  for (std::size_t i = 0; i < Page::kSlots; ++i) {
    Slot& slot = page_->slots[i];
    std::int32_t holder = slot.pid.load();
    // The first is the program's own, which guard looks for at the end.
    const bool left =
        i != 0 && holder != 0 && (slot.ended.load() != 0 || bare::process_gone(holder));
    if (holder != 0 && holder != pid && !left) continue;
    if (holder != pid && !slot.pid.compare_exchange_strong(holder, pid)) continue;
    slot.ended.store(0);
    slot.resident_bytes.store(0);
    raise_to(page_->slots_used, i + 1);
    slot_ = &slot;
    return;
  }
}

Shim::Held::Held(Shim& whose) : shim_(whose), signals_(bare::block_signals()) {
  shim_.lock_.take(&Shim::forked_unseen);
}

Shim::Held::~Held() {
  shim_.entries_.store(shim_.table_.size(), std::memory_order_release);
  shim_.lock_.give();
  bare::restore_signals(signals_);
}

void Shim::cover(const Entry& entry) {
  bool inserted = false;
  {
    Held held(*this);
    inserted = held.change([&](Table& table) { return table.insert(entry); });
  }
  if (!inserted) {
    page_->maps_left_out.fetch_add(1);
    return;
  }
  page_->maps.fetch_add(1);
  wake_.fetch_add(1, std::memory_order_release);
  bare::wake_word(wake_);
  start_trimmer();
}

void Shim::uncover(bare::Range range) {
  Held held(*this);
  held.change([&](Table& table) {
    table.remove(range);
    return true;
  });
}

void Shim::make_writable(bare::Range range) {
  Held held(*this);
  held.table().make_writable(range);
}

void Shim::end() {
  if (!on() || bare::process_id() != pid_.load()) return;
  slot_->resident_bytes.store(0);
  slot_->ended.store(1);
}

Shim::Sum Shim::sum() {
  Sum sum;
  const std::uint64_t used = page_->slots_used.load();
  for (std::uint64_t i = 0; i < used && i < Page::kSlots; ++i) {
    Slot& slot = page_->slots[i];
    const std::uint64_t bytes = slot.resident_bytes.load();
    if (bytes == 0) continue;
    if (&slot != slot_ && bare::process_gone(slot.pid.load())) {
      slot.resident_bytes.store(0);  // killed: it could not say so itself
      continue;
    }
    sum.bytes += bytes;
    ++sum.processes;
  }
  return sum;
}

void Shim::wait_for_maps() {
  const std::uint32_t seen = wake_.load(std::memory_order_acquire);
  if (!covers_any()) bare::wait_word(wake_, seen, 0);
}

// A hook is no place inside malloc (only maps of files come here), so a thread may be started. The
// fork handler is told only now: allocators that were there before have theirs run before ours.
void Shim::start_trimmer() {
  const int pid = bare::process_id();
  int seen = trimmer_pid_.load();
  if (seen == pid || !trimmer_pid_.compare_exchange_strong(seen, pid)) return;
  if (!fork_told_.exchange(true)) bare::at_fork([] { shim.forked(); });
  if (!bare::start_thread(&run_trimmer)) page_->threads_refused.fetch_add(1);
}

void Shim::forked() {
  pid_.store(bare::process_id());
  lock_.reset();
  if (changing_.exchange(false)) {  // another thread was at it: nothing in there is sure
    page_->maps_left_out.fetch_add(table_.size());
    table_.clear();
  }
  if (settings_.only_this) {
    table_.clear();
    on_.store(false, std::memory_order_release);
  }
  entries_.store(table_.size(), std::memory_order_release);
  if (!on()) return;
  claim_slot();
  if (table_.size() != 0) start_trimmer();
}

// A child that was not made by fork(): its handler did not run.
bool Shim::forked_unseen() {
  if (bare::process_id() == shim.pid_.load()) return false;
  shim.pid_.store(bare::process_id());
  if (shim.changing_.exchange(false)) shim.table_.clear();
  shim.claim_slot();
  return true;
}

}  // namespace lowtide::ceiling
