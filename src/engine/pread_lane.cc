// A pool of threads that call pread. Sets are served in the order of arrival; the threads share one
// set piece by piece.
#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "engine/gap.h"
#include "engine/lane.h"
#include "engine/piece_reader.h"
#include "lowtide/error.h"
#include "os/memory.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr std::size_t kPieceReads = PieceReader::kMostReads;  // what one ring call can take
constexpr std::uint64_t kPieceBytes = 1024 * 1024;  // ends a piece early, so that threads share
constexpr std::size_t kMostSpareJobs = 8;
constexpr std::size_t kReadHere = 256;   // up to this many, handing over costs more than reading
constexpr std::size_t kPieceSpans = 16;  // spans per piece if they are cached, for the same reason
// Between cached neighbours, copying this many unneeded bytes is cheaper than a system call.
constexpr std::uint32_t kTinyGapBytes = 2048;

// A set in progress. Guarded by the lane's mutex, except for the reads themselves.
struct Job {
  ReadSet* set = nullptr;
  Plan plan;
  bool planned = false;  // read spans of the plan; else the reads one by one
  std::size_t next_read = 0;
  unsigned working = 0;  // pieces taken and not finished
  bool exhausted = false;
  Outcome outcome;
  Tally tally;
};

struct Piece {
  std::array<Span, kPieceSpans> spans;  // planned
  std::size_t first = 0, last = 0;      // of the spans, else of the reads
};

// The two ends are compared first, because that rejects most sets without a pass over them.
bool dense(std::span<const Read> reads) {
  const Extent &first = reads.front().from, &last = reads.back().from;
  return reads.size() > 1 && first.shard == last.shard && last.offset_bytes > first.offset_bytes &&
         (last.end_bytes() - first.offset_bytes) / reads.size() <= kTinyGapBytes &&
         Plan::sorted(reads);
}

class PreadLane final : public Lane {
 public:
  PreadLane(std::shared_ptr<Files> files, const LaneOptions& options)
      : files_(std::move(files)),
        options_(options),
        max_span_bytes_(longest_span_bytes(options.bounce_bytes / std::max(1U, options.width))),
        gap_(options.merge, options.most_gap_bytes) {
    spare_.reserve(kMostSpareJobs);
  }

  ~PreadLane() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void submit(ReadSet& set) noexcept override {
    try {
      enqueue(set);
    } catch (const std::exception& error) {
      set.done(not_started(error));
    }
  }

  bool read_here(std::span<const Read> reads, Outcome* outcome) noexcept override {
    if (options_.merge || reads.size() > kReadHere) return false;
    PieceReader reader(ShardOpener(files_, options_.access), false);
    for (std::size_t first = 0; first < reads.size() && outcome->ok(); first += kPieceReads) {
      *outcome = read_each(reader, reads, first, std::min(reads.size(), first + kPieceReads));
    }
    return true;
  }

  std::uint32_t gap_bytes() const noexcept override { return gap_.best(); }

 private:
  void enqueue(ReadSet& set) {
    std::unique_ptr<Job> job = take_job();
    start(*job, set);
    const std::lock_guard lock(mutex_);
    while (threads_.size() < options_.width) {
      try {
        threads_.push_back(start_thread("a reader thread", [this] { run(); }));
      } catch (const IoError&) {
        if (threads_.empty()) throw;
        break;  // fewer threads can do the same work
      }
    }
    // Each wake-up is a futex call, so no more threads are woken than there are pieces.
    const std::size_t wakes = std::min<std::size_t>(pieces_in(*job), options_.width);
    queue_.push_back(job.get());
    (void)job.release();
    for (std::size_t i = 0; i < wakes; ++i) work_.notify_one();
  }

  std::unique_ptr<Job> take_job() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return std::make_unique<Job>();
    std::unique_ptr<Job> job = std::move(spare_.back());
    spare_.pop_back();
    return job;
  }

  void start(Job& job, ReadSet& set) {
    job.set = &set;
    job.next_read = 0;
    job.exhausted = false;
    job.outcome = {};
    job.tally = {.started_ns = now_ns()};
    // A lane for cached bytes merges only reads that arrive sorted and dense, such as the cells of
    // a column: sorting would cost more than the calls that it saves.
    job.planned = options_.merge || (options_.bounce_bytes > 0 && dense(set.reads));
    if (!job.planned) return;
    const std::uint32_t gap = options_.merge ? next_gap() : kTinyGapBytes;
    job.plan.start(set.reads, {.merge = true, .gap_bytes = gap, .max_span_bytes = max_span_bytes_});
  }

  std::uint32_t next_gap() {
    const std::lock_guard lock(mutex_);
    return gap_.next();
  }

  std::size_t pieces_in(const Job& job) const {
    return job.planned ? job.set->reads.size() : job.set->reads.size() / kPieceReads + 1;
  }

  // With the lock held. False: the job has no more pieces.
  bool take_piece(Job& job, Piece* piece) {
    if (job.set->cancelled()) job.outcome.cancelled = true;
    if (!job.outcome.ok()) return false;
    if (job.planned) {
      const std::size_t most = options_.merge ? 1 : kPieceSpans;
      piece->first = piece->last = 0;
      while (piece->last < most && job.plan.next(&piece->spans[piece->last])) ++piece->last;
      return piece->last > 0;
    }
    const std::size_t size = job.set->reads.size();
    if (job.next_read == size) return false;
    piece->first = job.next_read;
    std::uint64_t bytes = 0;
    while (job.next_read < size && job.next_read - piece->first < kPieceReads &&
           bytes < kPieceBytes) {
      bytes += job.set->reads[job.next_read++].from.size_bytes;
    }
    piece->last = job.next_read;
    return true;
  }

  void run() {
    // For cached bytes each thread opens its own file description: threads that share one contend
    // for its reference count with every read.
    PieceReader reader(ShardOpener(files_, options_.access, !options_.merge), options_.rings);
    Memory bounce;
    std::unique_lock lock(mutex_);
    for (;;) {
      // An idle thread must not occupy a descriptor that others need.
      if (queue_.empty()) reader.opener().forget();
      work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Job* job = queue_.front();
      Piece piece;
      if (!take_piece(*job, &piece)) {
        queue_.pop_front();
        job->exhausted = true;
        if (job->working == 0) finish(job, lock);
        // Nor must it keep the files of a closed array open.
        if (queue_.empty()) reader.opener().forget();
        continue;
      }
      ++job->working;
      lock.unlock();
      const Outcome outcome = work(reader, *job, piece, &bounce);
      lock.lock();
      if (job->planned) {
        job->tally.requests += piece.last;
        for (std::size_t i = 0; i < piece.last; ++i) job->tally.bytes += piece.spans[i].size_bytes;
      }
      if (job->outcome.ok() && !outcome.ok()) job->outcome = outcome;
      if (--job->working == 0 && job->exhausted) finish(job, lock);
    }
  }

  Outcome work(PieceReader& reader, const Job& job, const Piece& piece, Memory* bounce) noexcept
      try {
    if (!job.planned) return read_each(reader, job.set->reads, piece.first, piece.last);
    if (bounce->size() == 0) *bounce = Memory(max_span_bytes_ + kAlignmentRoomBytes);
    return read_spans(reader.opener(), job, piece, bounce->data());
  } catch (const std::bad_alloc&) {
    Outcome outcome;
    outcome.err = ENOMEM;
    return outcome;
  }

  Outcome read_spans(ShardOpener& opener, const Job& job, const Piece& piece, std::byte* bounce) {
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

  // Takes the job out of the lane before it calls done(), without the lock: the owner may then
  // destroy the set or submit another one.
  void finish(Job* raw, std::unique_lock<std::mutex>& lock) {
    std::unique_ptr<Job> job(raw);
    const bool counts = job->planned && job->outcome.ok();
    if (counts) count_merged(job->plan.merged());
    gap_.ended(job->tally, counts);
    ReadSet* set = job->set;
    const Outcome outcome = job->outcome;
    if (spare_.size() < kMostSpareJobs) spare_.push_back(std::move(job));
    lock.unlock();
    set->done(outcome);
    lock.lock();
  }

  const std::shared_ptr<Files> files_;
  const LaneOptions options_;
  const std::uint32_t max_span_bytes_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Job*> queue_;  // owned; a job leaves the queue when its last piece is taken
  std::vector<std::unique_ptr<Job>> spare_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
  LaneGap gap_;
};

}  // namespace

std::unique_ptr<Lane> make_pread_lane(std::shared_ptr<Files> files, const LaneOptions& options) {
  return std::make_unique<PreadLane>(std::move(files), options);
}

}  // namespace lowtide
