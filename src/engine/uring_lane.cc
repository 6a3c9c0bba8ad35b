// One ring, which a single thread makes, feeds and reaps. Sets are fed in the order of arrival.
// Several are in flight at once, so that the disk never waits for a set to end.
#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "core/checked.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "engine/flights.h"
#include "engine/lane.h"
#include "lowtide/error.h"
#include "os/quiet_thread.h"
#include "os/ring.h"
#include "span/arena.h"
#include "span/gap.h"

namespace lowtide {
namespace {

// Each wait is for a sixteenth of the reads in flight. Waiting for one would cost a system call per
// read; waiting for all would let the disk run idle.
constexpr unsigned kReapShare = 16;
constexpr int kMostRetries = 100;  // then a read that the kernel keeps refusing becomes an error

class UringLane final : public Lane {
 public:
  UringLane(std::shared_ptr<Files> files, const LaneOptions& options)
      : opener_(files, options.access),
        options_(options),
        // Half, so that two of the longest reads fit into the arena.
        max_span_bytes_(longest_span_bytes(options.bounce_bytes / 2)),
        // Reads in flight keep their files open; half of the descriptors stay free for cached
        // reads.
        flights_(files->shards()->size() > files->max_open() / 2 ? files->max_open() / 2 : 0),
        gap_(options.merge, options.most_gap_bytes) {}

  ~UringLane() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void submit(ReadSet& set) noexcept override {
    try {
      auto job = std::make_unique<UringJob>();
      job->set = &set;
      const MutexLock lock(mutex_);
      if (!thread_.joinable()) thread_ = start_thread("a reader thread", [this] { run(); });
      arrived_.push_back(std::move(job));
    } catch (const std::exception& error) {
      set.done(not_started(error));
      return;
    }
    work_.notify_one();
  }

  bool read_here(std::span<const Read>, Outcome*) noexcept override { return false; }

  std::uint32_t gap_bytes() const noexcept override { return gap_.best(); }

 private:
  void run() noexcept {
    std::unique_ptr<Ring> ring;
    while (accept()) {
      int broken = ring ? 0 : make(&ring);
      if (broken == 0) {
        feed(*ring);
        if (ring->in_flight() > 0) {
          broken = ring->submit(std::max(1U, ring->in_flight() / kReapShare));
          reap(*ring);
        }
        retire();
      }
      if (broken != 0) {
        // The kernel writes into the buffers until their reads are done, and the destructor waits
        // for that. Only then may the owners have them back. The next set tries a new ring.
        ring.reset();
        fail_all(broken);
      }
    }
  }

  int make(std::unique_ptr<Ring>* ring) noexcept try {
    arena_ = std::make_unique<Arena>(std::max<std::size_t>(
        options_.bounce_bytes, max_span_bytes_ + std::size_t{kAlignmentRoomBytes}));
    flights_.reset(options_.width);
    *ring = std::make_unique<Ring>(options_.width);
    return 0;
  } catch (const IoError& error) {
    return error.err;
  } catch (const std::exception&) {
    return ENOMEM;
  }

  // Takes the sets that arrived, and waits for one if there is nothing else to do. False: the lane
  // ends.
  bool accept() {
    std::deque<std::unique_ptr<UringJob>> fresh;
    {
      const MutexLock lock(mutex_);
      if (jobs_.empty() && arrived_.empty()) {
        opener_.forget();  // an idle lane must not occupy a descriptor
        while (!stopping_ && arrived_.empty()) work_.wait(mutex_);
        if (arrived_.empty()) return false;
      }
      fresh.swap(arrived_);
    }
    // Without the lock: plans sort, and submit() must not wait for that.
    for (auto& job : fresh) {
      try {
        job->plan.start(
            job->set->reads,
            {.merge = options_.merge, .gap_bytes = gap_.next(), .max_span_bytes = max_span_bytes_});
      } catch (const std::bad_alloc&) {
        job->outcome.err = ENOMEM;
        job->fed = true;
      }
      jobs_.push_back(std::move(job));
    }
    return true;
  }

  void feed(Ring& ring) {
    for (auto& job : jobs_) {
      if (job->fed) continue;
      if (job->tally.started_ns == 0) job->tally.started_ns = now_ns();
      while (!job->fed) {
        if (flights_.full()) return;
        if (!has_span_) {
          if (job->set->cancelled()) job->outcome.cancelled = true;
          if (!job->outcome.ok() || !job->plan.next(&span_)) {
            job->fed = true;
            break;
          }
          has_span_ = true;
        }
        if (!launch(ring, *job)) return;
        has_span_ = false;
      }
    }
  }

  // Puts span_ of the job into the ring; false if there is no room for it now.
  bool launch(Ring& ring, UringJob& job) {
    if (!flights_.may_open(span_.shard)) return false;
    const OpenShard* shard = nullptr;
    if (const int err = opener_.open(span_.shard, &shard)) {
      // Descriptors become free when the reads that hold them are done, so try again later.
      if ((err == EMFILE || err == ENFILE) && ring.in_flight() > 0) return false;
      job.outcome.err = err;
      job.outcome.read = job.plan.culprit(span_, span_.offset_bytes);
      return true;  // nothing was launched, but feed() must go on: it ends a job that has failed
    }
    const std::uint32_t slot = flights_.free_slot();
    Flight& flight = flights_.at(slot);
    flight = {.job = &job, .span = span_, .shard = *shard};
    const std::uint64_t begin = flight.begin_bytes();
    flight.size_bytes = static_cast<std::uint32_t>(shard->aligned_bytes(span_));
    flight.into = shard->direct ? nullptr : job.plan.target(span_);
    if (flight.into == nullptr) {
      flight.bounce = flight.into = arena_->allocate(flight.size_bytes);
      if (flight.bounce == nullptr) {  // the arena is full until other reads land
        flight = {};
        return false;
      }
    }
    if (!ring.read(shard->fd, begin, flight.into, flight.size_bytes, slot)) {
      give_back(flight);
      flight = {};
      return false;
    }
    flights_.take_off();
    ++job.flying;
    ++job.tally.requests;
    job.tally.bytes += flight.size_bytes;
    count(1, flight.size_bytes);
    return true;
  }

  void reap(Ring& ring) {
    std::array<Ring::Done, 64> done;
    for (;;) {
      const std::size_t n = ring.reap(done.data(), done.size());
      for (std::size_t i = 0; i < n; ++i) {
        complete(ring, static_cast<std::uint32_t>(done[i].tag), done[i].result);
      }
      if (n < done.size()) return;
    }
  }

  void complete(Ring& ring, std::uint32_t slot, std::int32_t result) {
    Flight& flight = flights_.at(slot);
    const bool again = result == -EAGAIN || result == -EINTR;
    if (again && ++flight.retries <= kMostRetries && relaunch(ring, slot)) return;
    UringJob& job = *flight.job;
    // EINVAL: some file systems accept O_DIRECT only at open. settle() then reads buffered.
    if (result < 0 && result != -EINVAL) {
      fail(job, flight, -result);
    } else {
      flight.have_bytes += static_cast<std::uint32_t>(std::max(result, 0));
      const bool whole = flight.have_bytes >= flight.need_bytes();
      // A direct read cannot continue at an unaligned byte, which is where the file ends.
      const bool aligned = flight.have_bytes % flight.shard.alignment_bytes == 0;
      if (!whole && result > 0 && aligned && relaunch(ring, slot)) return;
      settle(job, flight, whole);
    }
    give_back(flight);
    flights_.land(slot);
    --job.flying;
  }

  bool relaunch(Ring& ring, std::uint32_t slot) {
    const Flight& flight = flights_.at(slot);
    return ring.read(flight.shard.fd, flight.begin_bytes() + flight.have_bytes,
                     flight.into + flight.have_bytes, flight.size_bytes - flight.have_bytes, slot);
  }

  // All bytes have arrived, or plain reads fetch the rest: the tail of a file that does not end on
  // a sector, or everything if the file system refuses direct reads. read_span() also drops the
  // pages behind a buffered read, for which it is called even if nothing is left to read.
  void settle(UringJob& job, const Flight& flight, bool whole) {
    if (whole && flight.bounce == nullptr && !flight.shard.drop_behind) return;
    if (whole && !flight.shard.drop_behind) {
      job.plan.place(flight.span, flight.into + (flight.span.offset_bytes - flight.begin_bytes()));
      return;
    }
    const Outcome outcome =
        read_span(flight.shard, job.plan, flight.span, flight.bounce, flight.have_bytes);
    if (job.outcome.ok() && !outcome.ok()) job.outcome = outcome;
  }

  void fail(UringJob& job, const Flight& flight, int err) {
    if (!job.outcome.ok()) return;
    job.outcome.err = err;
    job.outcome.read = job.plan.culprit(flight.span, flight.span.offset_bytes);
  }

  void give_back(const Flight& flight) {
    if (flight.bounce != nullptr) arena_->free(flight.bounce, flight.size_bytes);
  }

  // Calls done() for finished sets, oldest first. A job leaves the list before that call, because
  // the owner may destroy the set in it.
  void retire() {
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      UringJob& job = **it;
      if (!job.fed || job.flying > 0) {
        ++it;
        continue;
      }
      const std::unique_ptr<UringJob> ended = std::move(*it);
      it = jobs_.erase(it);
      if (ended->outcome.ok()) count_merged(ended->plan.merged());
      gap_.ended(ended->tally, ended->outcome.ok());
      ended->set->done(ended->outcome);
    }
  }

  void fail_all(int err) {
    has_span_ = false;
    for (auto& job : jobs_) {
      job->outcome.err = err;
      job->set->done(job->outcome);
    }
    jobs_.clear();
  }

  ShardOpener opener_;
  const LaneOptions options_;
  const std::uint32_t max_span_bytes_;

  Mutex mutex_;
  CondVar work_;
  std::deque<std::unique_ptr<UringJob>> arrived_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started under the lock; joined when nobody submits any more

  // Used by the lane's thread only.
  std::deque<std::unique_ptr<UringJob>> jobs_;
  Flights flights_;
  std::unique_ptr<Arena> arena_;
  Span span_;  // planned but not launched, of the first job that is not completely fed
  bool has_span_ = false;
  LaneGap gap_;
};

}  // namespace

std::unique_ptr<Lane> make_uring_lane(std::shared_ptr<Files> files, const LaneOptions& options) {
  return std::make_unique<UringLane>(std::move(files), options);
}

}  // namespace lowtide
