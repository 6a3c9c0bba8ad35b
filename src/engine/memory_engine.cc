#include "engine/memory_engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "lowtide/error.h"
#include "os/files.h"
#include "os/memory.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kFirstFetchBytes = 1024 * 1024;  // per request to the source; doubles
constexpr std::uint64_t kFetchBytes = 32 * 1024 * 1024;  // up to this
constexpr std::uint64_t kFetchReadBytes = 64 * 1024;  // small enough for several threads to share
constexpr std::uint64_t kWorthShare = 8;  // after an eighth was read, the rest will be needed too
// The source serves this much before any set waits, so that the first batches come at once.
constexpr std::uint64_t kAtOnceBytes = 8 * 1024 * 1024;
// If no waiting set was served for this long, the source gets one: the consumer must not starve.
constexpr std::uint64_t kTrickleNs = 50'000'000;
constexpr std::size_t kPrefetchAhead = 4;  // reads
constexpr std::size_t kCopiers = 2;
constexpr std::uint64_t kCacheLineBytes = 64;
constexpr std::uint64_t kPrefetchBytes = 1024;  // per read; the hardware prefetches the rest

// Threads that copy sets; one thread copies a whole set.
class Copiers {
 public:
  explicit Copiers(std::function<void(std::span<const Read>)> copy) : copy_(std::move(copy)) {}

  ~Copiers() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void submit(ReadSet& set) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      while (threads_.size() < kCopiers) {
        threads_.push_back(start_thread("a thread that copies", [this] { run(); }));
      }
      queue_.push_back(&set);
    } catch (const std::exception&) {  // no thread or no memory: copies on this thread
      serve(set);
      return;
    }
    work_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      ReadSet* set = queue_.front();
      queue_.pop_front();
      lock.unlock();
      serve(*set);
      lock.lock();
    }
  }

  void serve(ReadSet& set) const noexcept {
    copy_(set.reads);
    set.done({});
  }

  const std::function<void(std::span<const Read>)> copy_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<ReadSet*> queue_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

class MemoryEngine final : public Engine {
 public:
  MemoryEngine(std::shared_ptr<Files> files, std::unique_ptr<Engine> source, Budget& budget,
               std::string reason)
      : files_(std::move(files)),
        source_(std::move(source)),
        claim_(budget.claim(files_->total_bytes(), "the data")),
        reason_(std::move(reason)) {
    starts_bytes_.push_back(0);
    const Shards& shards = *files_->shards();
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      starts_bytes_.push_back(starts_bytes_.back() + shards.size_bytes(shard));
    }
    if (starts_bytes_.back() > 0)
      store_ = Memory(starts_bytes_.back(), false, "the data that is held");
    copiers_ = std::make_unique<Copiers>([this](std::span<const Read> reads) { copy(reads); });
  }

  ~MemoryEngine() override {
    stopping_ = true;
    if (filler_.joinable()) filler_.join();  // first, because it submits to the copiers
    copiers_.reset();
  }

  void submit(ReadSet& set) noexcept override {
    if (has(set.reads)) {
      copiers_->submit(set);
    } else if (!defer(set)) {
      source_->submit(set);
    }
  }

  Outcome read(std::span<const Read> reads) noexcept override {
    if (!has(reads)) return source_->read(reads);
    copy(reads);
    return {};
  }

  void expect_all() noexcept override {
    std::call_once(started_, [this] {
      filling_ = true;
      try {
        filler_ = start_thread("the thread that fills the memory", [this] { run(); });
      } catch (const IoError&) {
        release_waiting();
      }
    });
  }

  Prospect prospect() noexcept override {
    const bool held = filled_bytes_.load(std::memory_order_acquire) == store_.size();
    return {.resident = true, .held = held, .gap_bytes = source_->prospect().gap_bytes};
  }
  Traffic traffic() const noexcept override { return source_->traffic(); }
  bool holds_data() const noexcept override { return true; }
  std::string name() const override { return "memory"; }
  std::string reason() const override { return reason_; }

 private:
  [[nodiscard]] std::uint64_t place(const Extent& extent) const {
    return starts_bytes_[extent.shard] + extent.offset_bytes;
  }

  // Whether all of the reads can be copied from memory now. A read beyond the end of its shard
  // cannot: the source will report what is wrong with it.
  [[nodiscard]] bool holds(std::span<const Read> reads) const noexcept {
    const std::uint64_t filled = filled_bytes_.load(std::memory_order_acquire);
    return std::all_of(reads.begin(), reads.end(), [&](const Read& read) {
      const std::uint64_t end = place(read.from) + read.from.size_bytes;
      return end <= filled && end <= starts_bytes_[read.from.shard + 1];
    });
  }

  // The same for a set that has just arrived. Starts filling once enough has been requested.
  [[nodiscard]] bool has(std::span<const Read> reads) noexcept {
    if (filled_bytes_.load(std::memory_order_acquire) < store_.size()) {
      std::uint64_t bytes = 0;
      for (const Read& read : reads) bytes += read.from.size_bytes;
      const std::uint64_t asked = asked_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
      if (asked >= store_.size() / kWorthShare) expect_all();
    }
    return holds(reads);
  }

  void copy(std::span<const Read> reads) const noexcept {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (i + kPrefetchAhead < reads.size()) prefetch(reads[i + kPrefetchAhead].from);
      std::memcpy(reads[i].into, store_.data() + place(reads[i].from), reads[i].from.size_bytes);
    }
  }

  void prefetch(const Extent& extent) const {
    const std::byte* from = store_.data() + place(extent);
    const std::uint64_t size = std::min<std::uint64_t>(extent.size_bytes, kPrefetchBytes);
    for (std::uint64_t at = 0; at < size; at += kCacheLineBytes) __builtin_prefetch(from + at);
  }

  // Random reads would slow down the filling that makes them unnecessary, so a set that arrives
  // during it waits. False: the set does not wait.
  bool defer(ReadSet& set) noexcept {
    if (asked_bytes_.load(std::memory_order_relaxed) < kAtOnceBytes) return false;
    const std::lock_guard lock(mutex_);
    if (!filling_) return false;
    try {
      waiting_.push_back(&set);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  void run() noexcept {
    try {
      fill();
    } catch (const std::bad_alloc&) {
      // The source continues to serve.
    }
    release_waiting();
  }

  void release_waiting() noexcept {
    std::deque<ReadSet*> left;
    {
      const std::lock_guard lock(mutex_);
      filling_ = false;
      left.swap(waiting_);
    }
    for (ReadSet* set : left) submit(*set);
  }

  // Serves the waiting sets that can be served now and ends cancelled ones. Calls no set with the
  // lock held, because its owner may submit another.
  void serve_waiting() {
    std::deque<ReadSet*> ready, gone;
    ReadSet* trickle = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::deque<ReadSet*> still;
      for (ReadSet* set : waiting_) {
        (set->cancelled() ? gone : holds(set->reads) ? ready : still).push_back(set);
      }
      waiting_.swap(still);
      if (!ready.empty()) served_ns_ = now_ns();
      if (!waiting_.empty() && now_ns() - served_ns_ > kTrickleNs) {
        trickle = waiting_.front();
        waiting_.pop_front();
        served_ns_ = now_ns();
      }
    }
    for (ReadSet* set : ready) copiers_->submit(*set);
    Outcome cancelled;
    cancelled.cancelled = true;
    for (ReadSet* set : gone) set->done(cancelled);
    if (trickle != nullptr) source_->submit(*trickle);
  }

  void fill() {
    std::uint64_t fetch_bytes = kFirstFetchBytes;
    served_ns_ = now_ns();
    for (std::uint32_t shard = 0; shard < files_->shards()->size(); ++shard) {
      const std::uint64_t size = files_->shards()->size_bytes(shard);
      for (std::uint64_t first = 0; first < size;) {
        const std::uint64_t end = std::min(size, first + fetch_bytes);
        // The read that needs these bytes will meet the failure again and report it.
        if (stopping_ || !fetch(shard, first, end)) return;
        filled_bytes_.store(starts_bytes_[shard] + end, std::memory_order_release);
        serve_waiting();
        fetch_bytes = std::min(kFetchBytes, fetch_bytes * 2);
        first = end;
      }
    }
  }

  bool fetch(std::uint32_t shard, std::uint64_t first, std::uint64_t end) {
    std::vector<Read> reads;
    for (std::uint64_t at = first; at < end; at += kFetchReadBytes) {
      const auto part = static_cast<std::uint32_t>(std::min(kFetchReadBytes, end - at));
      reads.push_back({.from = {.offset_bytes = at, .size_bytes = part, .shard = shard},
                       .into = store_.data() + starts_bytes_[shard] + at});
    }
    return source_->read(reads).ok();
  }

  std::shared_ptr<Files> files_;
  std::unique_ptr<Engine> source_;
  Claim claim_;
  std::string reason_;
  std::vector<std::uint64_t> starts_bytes_;  // of each shard in the store
  Memory store_;
  std::atomic<std::uint64_t> filled_bytes_{0};  // from the front
  std::atomic<std::uint64_t> asked_bytes_{0};
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Copiers> copiers_;
  std::once_flag started_;
  std::thread filler_;
  std::mutex mutex_;
  std::atomic<bool> filling_{false};
  std::deque<ReadSet*> waiting_;  // guarded by mutex_
  std::uint64_t served_ns_ = 0;   // used by the filler only
};

}  // namespace

std::unique_ptr<Engine> make_memory_engine(std::shared_ptr<Files> files,
                                           std::unique_ptr<Engine> source, Budget& budget,
                                           std::string reason) {
  return std::make_unique<MemoryEngine>(std::move(files), std::move(source), budget,
                                        std::move(reason));
}

}  // namespace lowtide
