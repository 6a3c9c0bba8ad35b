// A pool of threads that call pread. Sets are served in the order of arrival; the threads share one
// set piece by piece.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/piece_reader.h"
#include "engine/pread_job.h"
#include "lowtide/error.h"
#include "os/memory.h"
#include "os/quiet_thread.h"
#include "span/gap.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostSpareJobs = 8;
constexpr std::size_t kReadAlone = 128;   // up to this many, waking others costs more than reading
constexpr std::size_t kReadShared = 512;  // up to this many, the caller reads too
// Cached neighbours that are read together pass through a buffer that stays in the processor's
// second-level cache. As measured, 128 to 512 KiB are equally fast.
constexpr std::uint32_t kHotSpanBytes = 256 * 1024;
constexpr std::uint32_t kHotGapBytes = 64 * 1024;

class PreadLane final : public Lane {
 public:
  PreadLane(std::shared_ptr<Files> files, const LaneOptions& options)
      : files_(std::move(files)),
        options_(options),
        max_span_bytes_(
            std::min(longest_span_bytes(options.bounce_bytes / std::max(1U, options.width)),
                     options.merge ? UINT32_MAX : kHotSpanBytes)),
        gap_(options.merge, options.most_gap_bytes) {
    spare_.reserve(kMostSpareJobs);
  }

  ~PreadLane() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads()) thread.join();
  }

  void submit(ReadSet& set) noexcept override {
    try {
      enqueue(set);
    } catch (const std::exception& error) {
      set.done(not_started(error));
    }
  }

  bool read_here(std::span<const Read> reads, Outcome* outcome) noexcept override {
    if (options_.merge || reads.size() > kReadShared) return false;
    if (reads.size() > kReadAlone) {
      *outcome = read_with_threads(reads);
      return true;
    }
    PieceReader reader(ShardOpener(files_, options_.access), false);
    for (std::size_t first = 0; first < reads.size() && outcome->ok();
         first += PreadPiece::kMostReads) {
      *outcome =
          read_each(reader, reads, first, std::min(reads.size(), first + PreadPiece::kMostReads));
    }
    return true;
  }

  std::uint32_t gap_bytes() const noexcept override {
    if (options_.merge) return gap_.best();
    return options_.bounce_bytes > 0 ? whole_.distance_bytes() : 0;
  }

 private:
  // A piece of a job; or a job that has ended.
  struct Task {
    PreadJob* job = nullptr;
    PreadPiece piece;
    bool ended = false;
  };

  // The calling thread takes pieces too, because it can do most of the work before the others are
  // awake.
  Outcome read_with_threads(std::span<const Read> reads) noexcept {
    Waiter waiter;
    waiter.reads = reads;
    submit(waiter);
    PieceReader reader(ShardOpener(files_, options_.access), false);
    Memory bounce;
    Task task;
    while (next_of(waiter, &task)) perform(&task, reader, &bounce);
    return waiter.wait();
  }

  // Taken out under the lock, so that they are joined without it: a thread needs it to end.
  [[nodiscard]] std::vector<std::thread> threads() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(threads_, {});
  }

  void enqueue(ReadSet& set) LOWTIDE_EXCLUDES(mutex_) {
    std::unique_ptr<PreadJob> job = take_job();
    start(*job, set);
    const MutexLock lock(mutex_);
    threads_.reserve(options_.width);  // push_back must not throw once a thread is running
    while (threads_.size() < options_.width) {
      try {
        threads_.push_back(start_thread("a reader thread", [this] { run(); }));
      } catch (const IoError&) {
        if (threads_.empty()) throw;
        break;  // fewer threads can do the same work
      }
    }
    // Each wake-up is a futex call, so no more threads are woken than there are pieces.
    const std::size_t wakes = std::min<std::size_t>(job->pieces(), options_.width);
    queue_.push_back(job.get());  // may throw, so the job is released only afterwards
    (void)job.release();
    for (std::size_t i = 0; i < wakes; ++i) work_.notify_one();
  }

  std::unique_ptr<PreadJob> take_job() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (spare_.empty()) return std::make_unique<PreadJob>();
    std::unique_ptr<PreadJob> job = std::move(spare_.back());
    spare_.pop_back();
    return job;
  }

  void start(PreadJob& job, ReadSet& set) {
    job.set = &set;
    job.next_read = 0;
    job.exhausted = false;
    job.outcome = {};
    job.tally = {.started_ns = now_ns()};
    PlanLimits limits{.merge = true, .gap_bytes = kHotGapBytes, .max_span_bytes = max_span_bytes_};
    if (options_.merge) {
      limits.gap_bytes = next_gap();
      job.planned = true;
    } else {
      // A lane for cached bytes merges only reads that arrive sorted, such as those of a sweep or
      // the cells of a column: sorting would cost more than the calls that it saves.
      job.planned = options_.bounce_bytes > 0 && worth_whole(set.reads);
    }
    if (job.planned) job.plan.start(set.reads, limits);
  }

  std::uint32_t next_gap() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return gap_.next();
  }

  [[nodiscard]] bool worth_whole(std::span<const Read> reads) LOWTIDE_EXCLUDES(mutex_) {
    const std::optional<std::uint64_t> distance = SpanPlan::sorted_distance(reads);
    if (reads.size() < 2 || !distance) return false;
    const MutexLock lock(mutex_);
    return whole_.worth(*distance);
  }

  void run() {
    // For cached bytes each thread opens its own file description: threads that share one contend
    // for its reference count with every read.
    PieceReader reader(ShardOpener(files_, options_.access, !options_.merge), options_.rings);
    Memory bounce;
    Task task;
    while (next_task(reader, &task)) perform(&task, reader, &bounce);
  }

  void perform(Task* task, PieceReader& reader, Memory* bounce) noexcept LOWTIDE_EXCLUDES(mutex_) {
    if (!task->ended) {
      const std::uint64_t started_ns = now_ns();
      const Outcome outcome = work(reader, *task->job, task->piece, bounce);
      piece_ended(task, outcome, now_ns() - started_ns);
    }
    if (task->ended) finish(std::unique_ptr<PreadJob>(task->job));
  }

  // Waits for work. False: it is time to end.
  [[nodiscard]] bool next_task(PieceReader& reader, Task* task) LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (;;) {
      // An idle thread must not occupy a descriptor that others need, nor keep the files of a
      // closed array open.
      if (queue_.empty()) reader.opener().forget();
      while (!stopping_ && queue_.empty()) work_.wait(mutex_);
      if (queue_.empty()) return false;
      if (take_from(queue_.begin(), task)) return true;
    }
  }

  // The same for one set; does not wait. False: nothing is left for the caller.
  [[nodiscard]] bool next_of(const ReadSet& set, Task* task) LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto place = std::ranges::find(queue_, &set, &PreadJob::set);
    return place != queue_.end() && take_from(place, task);
  }

  // False: the job had no more pieces and has left the queue; others still work on it.
  [[nodiscard]] bool take_from(std::deque<PreadJob*>::iterator place, Task* task)
      LOWTIDE_REQUIRES(mutex_) {
    task->job = *place;
    task->ended = false;
    // From a disk one span at a time, so that every thread has a request in flight. Cached spans
    // take so little time that several share one turn at the lock.
    if (task->job->take(options_.merge ? 1 : PreadPiece::kMostSpans, &task->piece)) {
      ++task->job->working;
      return true;
    }
    queue_.erase(place);
    task->job->exhausted = true;
    task->ended = task->job->working == 0;
    return task->ended;
  }

  void piece_ended(Task* task, const Outcome& outcome, std::uint64_t ns) LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    PreadJob& job = *task->job;
    const PreadPiece& piece = task->piece;
    if (job.planned) {
      std::uint64_t bytes = 0;
      for (std::size_t i = 0; i < piece.last; ++i) bytes += piece.spans[i].size_bytes;
      job.tally.requests += piece.last;
      job.tally.bytes += bytes;
      whole_.read_whole(bytes, ns);
    } else {
      whole_.read_singly(piece.last - piece.first, ns);
    }
    if (job.outcome.ok() && !outcome.ok()) job.outcome = outcome;
    task->ended = --job.working == 0 && job.exhausted;
  }

  Outcome work(PieceReader& reader, const PreadJob& job, const PreadPiece& piece,
               Memory* bounce) noexcept try {
    if (!job.planned) return read_each(reader, job.set->reads, piece.first, piece.last);
    // By the first piece that needs it: threads of a lane that never merges need none.
    if (bounce->size() == 0) *bounce = Memory(max_span_bytes_ + kAlignmentRoomBytes);
    return read_spans(reader.opener(), job, piece, bounce->data());
  } catch (const std::bad_alloc&) {
    Outcome outcome;
    outcome.err = ENOMEM;
    return outcome;
  }

  Outcome read_spans(ShardOpener& opener, const PreadJob& job, const PreadPiece& piece,
                     std::byte* bounce) {
    Outcome outcome;
    for (std::size_t i = 0; i < piece.last && outcome.ok(); ++i) {
      const Span& span = piece.spans[i];
      const OpenShard* shard = nullptr;
      if (const int err = opener.open(span.shard, &shard)) {
        outcome.err = err;
        outcome.read = job.plan.culprit(span, span.offset_bytes);
        return outcome;
      }
      count(1, shard->aligned_bytes(span));
      outcome = read_span(*shard, job.plan, span, bounce);
    }
    return outcome;
  }

  Outcome read_each(PieceReader& reader, std::span<const Read> reads, std::size_t first,
                    std::size_t last) {
    const std::span<const Read> piece = reads.subspan(first, last - first);
    Outcome outcome = reader.read(piece);
    if (!outcome.ok()) {
      outcome.read += static_cast<std::uint32_t>(first);
      return outcome;
    }
    std::uint64_t bytes = 0;
    for (const Read& read : piece) bytes += read.from.size_bytes;
    count(piece.size(), bytes);
    return outcome;
  }

  // The job has left the lane before done() is called, without the lock: the owner may then destroy
  // the set or submit another one.
  void finish(std::unique_ptr<PreadJob> job) LOWTIDE_EXCLUDES(mutex_) {
    ReadSet* const set = job->set;
    const Outcome outcome = job->outcome;
    {
      const MutexLock lock(mutex_);
      const bool counts = job->planned && job->outcome.ok();
      if (counts) count_merged(job->plan.merged());
      gap_.ended(job->tally, counts);
      if (spare_.size() < kMostSpareJobs) spare_.push_back(std::move(job));
    }
    set->done(outcome);
  }

  const std::shared_ptr<Files> files_;
  const LaneOptions options_;
  const std::uint32_t max_span_bytes_;
  mutable Mutex mutex_;
  CondVar work_;
  // Owned; a job leaves the queue when its last piece is taken.
  std::deque<PreadJob*> queue_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<PreadJob>> spare_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
  LaneGap gap_;       // changed with the lock held, except for best()
  WholeModel whole_;  // the same, except for distance_bytes()
};

}  // namespace

std::unique_ptr<Lane> make_pread_lane(std::shared_ptr<Files> files, const LaneOptions& options) {
  return std::make_unique<PreadLane>(std::move(files), options);
}

}  // namespace lowtide
