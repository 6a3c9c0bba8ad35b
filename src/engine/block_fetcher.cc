#include "engine/block_fetcher.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>

#include "engine/lane.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kBlockBytes = KeptObject::kBlockBytes;

}  // namespace

// A buffer, and the block that is on its way into it.
class BlockFetcher::Slot final : public ReadSet {
 public:
  Slot(BlockFetcher& owner, std::span<std::byte> buffer) : owner_(owner), buffer_(buffer) {}

  // Asks the source for the block.
  void fetch(std::uint64_t size_bytes) {
    read_ = {.from = {.offset_bytes = offset_bytes(),
                      .size_bytes = static_cast<std::uint32_t>(size_bytes),
                      .shard = key.first},
             .into = buffer_.data()};
    reads = {&read_, 1};
    owner_.source_.submit(*this);
  }

  void done(const Outcome& found) noexcept override {
    const MutexLock lock(owner_.mutex_);
    outcome = found;
    owner_.arrived_.push_back(this);
    owner_.changed_.notify_one();
  }
  // When nobody waits for the block any more.
  [[nodiscard]] bool cancelled() const noexcept override {
    const MutexLock lock(owner_.mutex_);
    const auto wants = owner_.blocks_.find(key);
    return wants != owner_.blocks_.end() && std::ranges::all_of(wants->second, given_up);
  }

  [[nodiscard]] std::uint64_t offset_bytes() const { return key.second * kBlockBytes; }
  [[nodiscard]] std::span<std::byte> buffer() const { return buffer_; }

  Key key;
  Outcome outcome;

 private:
  BlockFetcher& owner_;
  const std::span<std::byte> buffer_;
  Read read_;
};

BlockFetcher::BlockFetcher(Engine& source, KeptObjects& objects, TierFolder& folder,
                           std::size_t buffers)
    : source_(source),
      objects_(objects),
      folder_(folder),
      memory_(buffers * kBlockBytes, /*prefault=*/false, "blocks of objects") {
  const MutexLock lock(mutex_);
  arrived_.reserve(buffers);  // done() must not allocate, because it must not throw
  for (std::size_t i = 0; i < buffers; ++i) {
    slots_.push_back(
        std::make_unique<Slot>(*this, memory_.bytes().subspan(i * kBlockBytes, kBlockBytes)));
    idle_.push_back(slots_.back().get());
  }
}

BlockFetcher::~BlockFetcher() {
  std::thread ending;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
    ending = std::move(thread_);
  }
  if (ending.joinable()) ending.join();
}

std::string BlockFetcher::why_not() const {
  const MutexLock lock(mutex_);
  return why_not_;
}

bool BlockFetcher::given_up(const Want& want) {
  return !want.job->outcome.ok() || want.job->set->cancelled();
}

void BlockFetcher::submit(ReadSet& set) noexcept {
  std::unique_ptr<Job> job;
  try {
    job = std::make_unique<Job>();
    job->set = &set;
    const MutexLock lock(mutex_);
    start_thread_locked();
    job->wants = 1;  // this call's own
    add_locked(*job);
  } catch (const std::exception& error) {
    if (job == nullptr || job->wants == 0) {
      source_.submit(set);
      return;
    }
    const MutexLock lock(mutex_);
    job->outcome = not_started(error);
  }
  changed_.notify_one();
  settle({{.job = job.release(), .read = 0}}, {});
}

void BlockFetcher::start_thread_locked() {
  if (!thread_.joinable()) {
    thread_ = start_quiet_thread("a thread that keeps blocks of objects", [this] { run(); });
  }
}

void BlockFetcher::add_locked(Job& job) {
  const std::span<const Read> reads = job.set->reads;
  for (std::uint32_t i = 0; i < reads.size(); ++i) {
    const Extent& from = reads[i].from;
    const std::uint64_t last = (from.end_bytes() - 1) / kBlockBytes;
    for (std::uint64_t number = from.offset_bytes / kBlockBytes; number <= last; ++number) {
      const auto [block, is_new] = blocks_.try_emplace(Key{from.shard, number});
      block->second.push_back({.job = &job, .read = i});
      ++job.wants;
      if (is_new) waiting_.push_back(block->first);
    }
  }
}

void BlockFetcher::run() {
  MutexLock lock(mutex_);
  for (;;) {
    if (!arrived_.empty()) {
      Slot& slot = *arrived_.front();
      arrived_.erase(arrived_.begin());
      lock.unlock();
      finish(slot);
      lock.lock();
    } else if (!waiting_.empty() && !idle_.empty()) {
      Slot& slot = *idle_.back();
      idle_.pop_back();
      slot.key = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      start(slot);
      lock.lock();
    } else if (stopping_) {
      return;
    } else {
      changed_.wait(mutex_);
    }
  }
}

void BlockFetcher::start(Slot& slot) {
  KeptObject& object = *objects_[slot.key.first];
  if (slot.cancelled()) {
    deliver(slot, {.cancelled = true});
  } else if (object.load(slot.key.second, slot.buffer())) {
    deliver(slot, {});
  } else {
    slot.fetch(object.block_bytes(slot.key.second));
  }
}

void BlockFetcher::finish(Slot& slot) {
  if (slot.outcome.ok()) {
    Wants wants;
    {
      const MutexLock lock(mutex_);
      wants.swap(blocks_[slot.key]);
    }
    for (const Want& want : wants) copy(slot, want);
    settle(wants, {});
    keep(slot);  // others may want the block meanwhile
  }
  deliver(slot, slot.outcome);
}

// Serves all sets that wait for the block, and releases the slot. A set that comes later requests
// the block again.
void BlockFetcher::deliver(Slot& slot, const Outcome& outcome) {
  Wants wants, others;
  {
    const MutexLock lock(mutex_);
    const auto block = blocks_.find(slot.key);
    wants.swap(block->second);
    if (outcome.cancelled) {  // some may have come after all others had given up
      std::ranges::copy_if(wants, std::back_inserter(others), std::not_fn(given_up));
      std::erase_if(wants, std::not_fn(given_up));
    }
    if (others.empty()) {
      blocks_.erase(block);
    } else {
      block->second = std::move(others);
      waiting_.push_back(slot.key);
    }
    idle_.push_back(&slot);  // used again by this thread only, later
  }
  if (outcome.ok()) {
    for (const Want& want : wants) copy(slot, want);
  }
  settle(wants, outcome);
}

void BlockFetcher::copy(const Slot& slot, const Want& want) const noexcept {
  const Read& read = want.job->set->reads[want.read];
  const std::uint64_t first = std::max(read.from.offset_bytes, slot.offset_bytes());
  const std::uint64_t end =
      std::min(read.from.end_bytes(), slot.offset_bytes() + slot.buffer().size());
  std::memcpy(read.into + (first - read.from.offset_bytes),
              slot.buffer().data() + (first - slot.offset_bytes()), end - first);
}

// Calls done() for sets that have nothing left to wait for.
void BlockFetcher::settle(const Wants& wants, const Outcome& outcome) {
  std::vector<std::unique_ptr<Job>> ended;
  {
    const MutexLock lock(mutex_);
    for (const Want& want : wants) {
      Job& job = *want.job;
      if (!outcome.ok() && job.outcome.ok()) {
        job.outcome = outcome;
        job.outcome.read = want.read;
      }
      if (--job.wants == 0) ended.emplace_back(&job);
    }
  }
  for (const auto& job : ended) job->set->done(job->outcome);
}

void BlockFetcher::keep(const Slot& slot) {
  if (!filling()) return;
  KeptObject& object = *objects_[slot.key.first];
  const std::uint64_t bytes = object.block_bytes(slot.key.second);
  try {
    if (!folder_.allows(bytes)) {
      stop_filling("the cache folder is full");
      return;
    }
    object.keep(slot.key.second, slot.buffer().first(bytes));
  } catch (const std::exception& error) {
    stop_filling(error.what());
  }
}

void BlockFetcher::stop_filling(std::string why) {
  const MutexLock lock(mutex_);
  why_not_ = std::move(why);
  filling_.store(false, std::memory_order_relaxed);
}

}  // namespace lowtide
