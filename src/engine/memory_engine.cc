#include "engine/memory_engine.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "engine/held_data.h"
#include "engine/split_sets.h"
#include "lowtide/error.h"
#include "os/files.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

// After an eighth was read, the rest will probably be needed too. Fresh memory costs more than the
// reads that it saves, so a program that looks at a few rows must not pay for all of them.
constexpr std::uint64_t kWorthShare = 8;
// One memory channel feeds about two threads that copy, and a batch is copied by one thread.
constexpr std::size_t kCopiers = 2;
// Filling is mostly the kernel's work on fresh pages, which several threads share well. More would
// take the processors from the consumer, whose batches come from the source meanwhile.
constexpr std::uint64_t kFillers = 2;

// Threads that copy sets; one thread copies a whole set.
class Copiers {
 public:
  explicit Copiers(const HeldData& data) : data_(data) {}

  ~Copiers() {
    std::vector<std::thread> threads;
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      threads.swap(threads_);
    }
    work_.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void submit(ReadSet& set) noexcept {
    try {
      const MutexLock lock(mutex_);
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
    while (ReadSet* const set = next()) serve(*set);
  }

  // Waits for a set; nullptr when it is time to end.
  [[nodiscard]] ReadSet* next() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!stopping_ && queue_.empty()) work_.wait(mutex_);
    if (queue_.empty()) return nullptr;
    ReadSet* const set = queue_.front();
    queue_.pop_front();
    return set;
  }

  void serve(ReadSet& set) const noexcept {
    Outcome outcome;
    outcome.cancelled = set.cancelled();
    if (!outcome.cancelled) data_.copy(set.reads);
    set.done(outcome);
  }

  const HeldData& data_;
  Mutex mutex_;
  CondVar work_;
  std::deque<ReadSet*> queue_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
};

class MemoryEngine final : public Engine {
 public:
  MemoryEngine(const Files& files, std::unique_ptr<Engine> source, Budget& budget,
               std::string reason)
      : source_(std::move(source)),
        claim_(budget.claim(files.total_bytes(), "the data")),
        reason_(std::move(reason)),
        data_(*files.shards()),
        copiers_(data_) {}

  ~MemoryEngine() override {
    stopping_ = true;
    for (std::thread& filler : fillers_) filler.join();
  }

  // Nobody waits for the filling: a tile that is not here yet comes from the source.
  void submit(ReadSet& set) noexcept override {
    const std::size_t here = count_here(set.reads);
    if (here == set.reads.size()) {
      copiers_.submit(set);
    } else if (here == 0) {
      source_->submit(set);
    } else {
      try {
        // Tiles that were filled since they were counted are here too, so a half may be empty.
        splits_.submit(
            set, [&](const Read& read) { return data_.has(read.from); },
            [&](ReadSet& held) { copiers_.submit(held); },
            [&](ReadSet& rest) { source_->submit(rest); });
      } catch (const std::bad_alloc&) {
        source_->submit(set);
      }
    }
  }

  Outcome read(std::span<const Read> reads) noexcept override {
    if (count_here(reads) < reads.size()) return source_->read(reads);
    data_.copy(reads);
    return {};
  }

  void expect_all() noexcept override {
    std::call_once(started_, [this] {
      try {
        while (fillers_.size() < std::min(kFillers, data_.tiles())) {
          fillers_.push_back(start_thread("a thread that fills the memory", [this] { fill(); }));
        }
      } catch (const std::exception&) {
        // Fewer threads, or the source alone, give the same bytes.
      }
    });
  }

  // Until all of the data is here, reads of the rest cost what they cost without this engine. So
  // the source says whether it pays to sort them and to look far ahead.
  Prospect prospect() noexcept override {
    Prospect prospect = source_->prospect();
    if (data_.whole()) prospect.resident = prospect.held = true;
    return prospect;
  }
  Traffic traffic() const noexcept override { return source_->traffic(); }
  bool holds_data() const noexcept override { return true; }
  std::string name() const override { return "memory"; }
  std::string reason() const override { return reason_; }

 private:
  // How many of the reads can be copied now. Starts to fill once enough has been requested.
  [[nodiscard]] std::size_t count_here(std::span<const Read> reads) noexcept {
    if (!data_.whole()) {
      std::uint64_t bytes = 0;
      for (const Read& read : reads) bytes += read.from.size_bytes;
      const std::uint64_t asked = asked_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
      if (asked >= data_.size_bytes() / kWorthShare) expect_all();
    }
    return static_cast<std::size_t>(std::count_if(
        reads.begin(), reads.end(), [&](const Read& read) { return data_.has(read.from); }));
  }

  // Takes one tile after the other, from the front: sorted sets of reads then find either all of
  // their bytes here or none.
  void fill() noexcept try {
    std::vector<Read> reads;
    while (!stopping_) {
      const std::uint64_t tile = next_tile_.fetch_add(1, std::memory_order_relaxed);
      if (tile >= data_.tiles()) return;
      reads.clear();
      data_.locate_tile(tile, reads);
      // The read that needs these bytes will meet the failure again and report it.
      if (!source_->read(reads).ok()) return;
      data_.tile_filled(tile);
    }
  } catch (const std::bad_alloc&) {
    // The source continues to serve.
  }

  std::unique_ptr<Engine> source_;
  Claim claim_;
  std::string reason_;
  HeldData data_;
  Copiers copiers_;
  SplitSets splits_;
  std::atomic<std::uint64_t> asked_bytes_{0};  // until all of the data is here
  std::once_flag started_;
  std::vector<std::thread> fillers_;  // written once, by expect_all()
  std::atomic<std::uint64_t> next_tile_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace

std::unique_ptr<Engine> make_memory_engine(const Files& files, std::unique_ptr<Engine> source,
                                           Budget& budget, std::string reason) {
  return std::make_unique<MemoryEngine>(files, std::move(source), budget, std::move(reason));
}

}  // namespace lowtide
