#include "engine/memory_engine.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "engine/copiers.h"
#include "engine/fill_race.h"
#include "engine/held_data.h"
#include "engine/split_sets.h"
#include "lowtide/error.h"
#include "lowtide/interrupt.h"
#include "os/files.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

// Once an eighth has been read, the rest will probably be needed too. Fresh memory costs more than
// a few reads save, so a program that looks at a few rows must not pay for all of them.
constexpr std::uint64_t kWorthShare = 8;
constexpr std::uint64_t kReadCostBytes = 1024;  // filling with this much costs less than a read
// Most of the filling is the kernel's work on fresh pages, which two threads share well. More would
// take processors from the consumer, whose batches come from the source meanwhile.
constexpr std::uint64_t kFillers = 2;

// Ends a filler's wait for a server that does not respond: the destructor joins the fillers.
class StopsFilling final : public WaitHook {
 public:
  explicit StopsFilling(const std::atomic<bool>& stopping) : stopping_(stopping) {}
  bool stop() noexcept override { return stopping_; }

 private:
  const std::atomic<bool>& stopping_;
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

  void submit(ReadSet& set) noexcept override {
    count_asked(set.reads);
    const std::size_t here = count_here(set.reads);
    if (here == set.reads.size()) {
      copiers_.submit(set);
    } else if (!wait_for_filling(set)) {
      serve(set, here);
    }
  }

  // Never waits for the filling: the caller needs these few rows now.
  Outcome read(std::span<const Read> reads) noexcept override {
    count_asked(reads);
    if (count_here(reads) < reads.size()) return source_->read(reads);
    data_.copy(reads);
    return {};
  }

  void expect_all() noexcept override {
    std::call_once(started_, [this] {
      const std::uint64_t wanted = std::min(kFillers, data_.tiles());
      // Counted before they start: each thread subtracts itself, and the first may end at once.
      {
        const MutexLock lock(mutex_);
        race_.filling_starts(now_ns());
        filling_ = wanted;
      }
      try {
        fillers_.reserve(wanted);  // push_back must not throw once a thread is running
        while (fillers_.size() < wanted) {
          fillers_.push_back(start_thread("a thread that fills the memory", [this] { fill(); }));
        }
      } catch (const std::exception&) {
        // Fewer threads, or the source alone, give the same bytes.
        filling_ends(wanted - fillers_.size());
      }
    });
  }

  // Until all of the data is held, reads of the rest cost as much as without this engine. So the
  // source decides whether it pays to sort them and to look far ahead, unless they wait for the
  // filling anyway.
  Prospect prospect() noexcept override {
    Prospect prospect = source_->prospect();
    if (data_.whole() || waits(prospect.resident)) {
      prospect.resident = prospect.held = true;
    } else if (prospect.resident && started()) {
      prospect.cached_distance_bytes = 0;  // the rest will be held soon: sorting no longer pays off
    }
    return prospect;
  }
  Traffic traffic() const noexcept override { return source_->traffic(); }
  bool holds_data() const noexcept override { return true; }
  std::string name() const override { return "memory"; }
  std::string reason() const override { return reason_; }

 private:
  // A set that the source serves while the memory fills. Its time counts for the race.
  class Fetch final : public ReadSet {
   public:
    Fetch(MemoryEngine& engine, ReadSet& set) : engine_(engine), set_(set) { reads = set.reads; }

    void done(const Outcome& outcome) noexcept override {
      const std::unique_ptr<Fetch> self(this);
      {
        const MutexLock lock(engine_.mutex_);
        engine_.race_.fetched(size_of(reads), now_ns());
      }
      set_.done(outcome);  // last, because the owner may then destroy the engine
    }
    [[nodiscard]] bool cancelled() const noexcept override { return set_.cancelled(); }

   private:
    MemoryEngine& engine_;
    ReadSet& set_;
  };

  [[nodiscard]] static std::uint64_t size_of(std::span<const Read> reads) {
    std::uint64_t bytes = 0;
    for (const Read& read : reads) bytes += read.from.size_bytes;
    return bytes;
  }

  [[nodiscard]] bool waits(bool cached) const LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return filling_ > 0 && race_.worth_waiting(cached);
  }

  [[nodiscard]] bool started() const LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return filling_ > 0;
  }

  // False: it is not worth waiting.
  [[nodiscard]] bool wait_for_filling(ReadSet& set) noexcept LOWTIDE_EXCLUDES(mutex_) try {
    const bool cached = source_->prospect().resident;  // without the lock: may ask the kernel
    const MutexLock lock(mutex_);
    if (filling_ == 0 || !race_.worth_waiting(cached)) return false;
    waiting_.push_back(&set);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Serves a set of which `here` reads were filled when they were counted.
  void serve(ReadSet& set, std::size_t here) noexcept {
    if (here == 0) {
      fetch(set);
      return;
    }
    try {
      // Tiles that were filled since they were counted are here too, so a half may be empty.
      splits_.submit(
          set, [&](const Read& read) { return data_.has(read.from); },
          [&](ReadSet& held) { copiers_.submit(held); }, [&](ReadSet& rest) { fetch(rest); });
    } catch (const std::bad_alloc&) {
      fetch(set);
    }
  }

  void fetch(ReadSet& set) noexcept {
    Fetch* const timed = new (std::nothrow) Fetch(*this, set);
    if (timed == nullptr) {
      source_->submit(set);
      return;
    }
    {
      const MutexLock lock(mutex_);
      race_.fetch_starts(now_ns());
    }
    source_->submit(*timed);
  }

  void wake_waiting() noexcept {
    while (ReadSet* const set = next_woken()) {
      Outcome outcome;
      outcome.cancelled = set->cancelled();
      if (outcome.cancelled) {
        set->done(outcome);
      } else {
        serve(*set, count_here(set->reads));
      }
    }
  }

  // A set that need not wait any longer, or that was cancelled; nullptr: there is none.
  [[nodiscard]] ReadSet* next_woken() noexcept LOWTIDE_EXCLUDES(mutex_) {
    const bool cached = source_->prospect().resident;
    const MutexLock lock(mutex_);
    const bool all = data_.whole() || filling_ == 0 || !race_.worth_waiting(cached);
    const auto found =
        std::ranges::find_if(waiting_, [&](const ReadSet* set) { return all || set->cancelled(); });
    if (found == waiting_.end()) return nullptr;
    ReadSet* const set = *found;
    waiting_.erase(found);
    return set;
  }

  // Starts to fill once enough has been requested.
  void count_asked(std::span<const Read> reads) noexcept {
    if (data_.whole()) return;
    const std::uint64_t bytes = std::max(size_of(reads), reads.size() * kReadCostBytes);
    const std::uint64_t asked = asked_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (asked >= data_.size_bytes() / kWorthShare) expect_all();
  }

  // How many of the reads can be copied now.
  [[nodiscard]] std::size_t count_here(std::span<const Read> reads) const noexcept {
    return static_cast<std::size_t>(std::count_if(
        reads.begin(), reads.end(), [&](const Read& read) { return data_.has(read.from); }));
  }

  void fill() noexcept {
    const StopsFilling hook(stopping_);
    try {
      fill_tiles();
    } catch (const std::bad_alloc&) {
      // The source continues to serve.
    }
    filling_ends(1);
  }

  // Takes one tile after the other, from the front: sorted sets of reads then find either all of
  // their bytes here or none.
  void fill_tiles() {
    std::vector<Read> reads;
    while (!stopping_) {
      const std::uint64_t tile = next_tile_.fetch_add(1, std::memory_order_relaxed);
      if (tile >= data_.tiles()) return;
      reads.clear();
      data_.locate_tile(tile, reads);
      // The read that needs these bytes will meet the failure again and report it.
      if (!source_->read(reads).ok()) return;
      data_.tile_filled(tile);
      {
        const MutexLock lock(mutex_);
        race_.filled(size_of(reads), now_ns());
      }
      wake_waiting();
    }
  }

  void filling_ends(std::uint64_t threads) noexcept LOWTIDE_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      filling_ -= threads;
    }
    wake_waiting();
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
  mutable Mutex mutex_;
  FillRace race_ LOWTIDE_GUARDED_BY(mutex_);
  std::uint64_t filling_ LOWTIDE_GUARDED_BY(mutex_) = 0;      // threads
  std::vector<ReadSet*> waiting_ LOWTIDE_GUARDED_BY(mutex_);  // for the filling
};

}  // namespace

std::unique_ptr<Engine> make_memory_engine(const Files& files, std::unique_ptr<Engine> source,
                                           Budget& budget, std::string reason) {
  return std::make_unique<MemoryEngine>(files, std::move(source), budget, std::move(reason));
}

}  // namespace lowtide
