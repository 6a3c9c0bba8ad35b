// Spans as ranges of objects. Bytes go to the targets of their reads as they arrive, and those of
// gaps nowhere, so that a span of any length needs no buffer.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "http/transport.h"
#include "span/gap.h"
#include "span/plan.h"

namespace lowtide {
namespace {

// Longer reads are split, so that several connections share them: one alone rarely fills a line.
// Less so if other sets are on their way: most servers prefer few long ranges to many.
constexpr std::uint32_t kMostRangeBytes = 4 * 1024 * 1024;
constexpr std::uint32_t kMostAmongOthersBytes = 16 * 1024 * 1024;
// As many spans are in line as in flight, so that no connection waits for the next one.
constexpr unsigned kInLine = 2;

struct HttpJob {
  ReadSet* set = nullptr;
  SpanPlan plan;
  Outcome outcome;
  unsigned flying = 0;
  bool fed = false;  // no more spans
  Tally tally;
  std::atomic<bool> failed{false};  // what is on its way need not arrive
};

class HttpLane final : public Lane {
 public:
  HttpLane(std::shared_ptr<Files> files, const LaneOptions& options)
      : files_(std::move(files)),
        gap_(options.merge, options.most_gap_bytes, kRemoteGap),
        merge_(options.merge),
        transport_({.most_in_flight = options.width, .hedge = true, .retry = {}}) {
    requests_.resize(std::size_t{options.width} * kInLine);
    for (auto& request : requests_) {
      request = std::make_unique<SpanRequest>(*this);
      idle_.push_back(request.get());
    }
  }

  void submit(ReadSet& set) noexcept override {
    try {
      auto job = std::make_unique<HttpJob>();
      job->set = &set;
      job->tally.started_ns = now_ns();
      start(*job);
      const MutexLock lock(mutex_);
      jobs_.push_back(std::move(job));
    } catch (const std::exception& error) {
      set.done(not_started(error));
      return;
    }
    pump();
  }

  bool read_here(std::span<const Read>, Outcome*) noexcept override { return false; }
  std::uint32_t gap_bytes() const noexcept override { return gap_.best(); }

 private:
  class SpanRequest final : public HttpRequest {
   public:
    explicit SpanRequest(HttpLane& owner) : lane(owner) {}

    void take(std::uint64_t offset, std::span<const std::byte> bytes,
              std::uint32_t* cursor) noexcept override {
      job->plan.place_part(span, offset, bytes, cursor);
    }
    void done(const HttpResult& result) noexcept override { lane.ended(*this, result); }
    [[nodiscard]] bool cancelled() const noexcept override {
      return job->set->cancelled() || job->failed.load(std::memory_order_relaxed);
    }

    HttpLane& lane;
    HttpJob* job = nullptr;
    Span span;
  };

  // Without the lock while it sorts.
  void start(HttpJob& job) LOWTIDE_EXCLUDES(mutex_) {
    PlanLimits limits{.merge = merge_, .max_span_bytes = kMostRangeBytes};
    {
      const MutexLock lock(mutex_);
      limits.gap_bytes = gap_.next();
      if (!jobs_.empty()) limits.max_span_bytes = kMostAmongOthersBytes;
    }
    job.plan.start(job.set->reads, limits);
  }

  // Hands over spans while there are idle requests. Without the lock: a request that cannot start
  // ends inside submit().
  void pump() noexcept LOWTIDE_EXCLUDES(mutex_) {
    while (SpanRequest* const request = next_request()) transport_.submit(*request);
    retire();
  }

  [[nodiscard]] SpanRequest* next_request() noexcept LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (const auto& job : jobs_) {
      if (job->fed) continue;
      if (idle_.empty()) return nullptr;
      if (job->set->cancelled()) job->outcome.cancelled = true;
      SpanRequest& request = *idle_.back();
      if (!job->outcome.ok() || !job->plan.next(&request.span)) {
        job->fed = true;
        continue;
      }
      idle_.pop_back();
      prepare(request, *job);
      return &request;
    }
    return nullptr;
  }

  void prepare(SpanRequest& request, HttpJob& job) LOWTIDE_REQUIRES(mutex_) {
    const Span& span = request.span;
    request.job = &job;
    request.object = files_->shards()->remote(span.shard);
    request.offset_bytes = span.offset_bytes;
    request.size_bytes = span.size_bytes;
    request.object_bytes = files_->shards()->size_bytes(span.shard);
    ++job.flying;
    ++job.tally.requests;
    job.tally.bytes += span.size_bytes;
    count(1, span.size_bytes);
  }

  void ended(SpanRequest& request, const HttpResult& result) noexcept LOWTIDE_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      HttpJob& job = *request.job;
      if (!result.ok() && job.outcome.ok()) {
        job.outcome = outcome_of(job, request.span, result);
        job.failed.store(true, std::memory_order_relaxed);
      }
      --job.flying;
      request.job = nullptr;
      idle_.push_back(&request);
    }
    pump();
  }

  [[nodiscard]] static Outcome outcome_of(const HttpJob& job, const Span& span,
                                          const HttpResult& result) {
    Outcome outcome;
    outcome.cancelled = result.fault == HttpFault::cancelled;
    outcome.ended = result.fault == HttpFault::ended;
    outcome.no_thread = result.fault == HttpFault::no_thread;
    outcome.err = outcome.cancelled || outcome.ended ? 0 : errno_of(result);
    outcome.found_bytes = result.found_bytes;
    const std::uint64_t at_bytes = outcome.ended ? result.found_bytes : span.offset_bytes;
    outcome.read = job.plan.culprit(span, std::max(at_bytes, span.offset_bytes));
    outcome.http = result;
    return outcome;
  }

  // Calls done() for finished sets, oldest first. A job leaves the list before, because the owner
  // may then destroy the set.
  void retire() noexcept LOWTIDE_EXCLUDES(mutex_) {
    while (const std::unique_ptr<HttpJob> job = next_finished()) job->set->done(job->outcome);
  }

  [[nodiscard]] std::unique_ptr<HttpJob> next_finished() noexcept LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found =
        std::ranges::find_if(jobs_, [](const auto& job) { return job->fed && job->flying == 0; });
    if (found == jobs_.end()) return nullptr;
    std::unique_ptr<HttpJob> job = std::move(*found);
    jobs_.erase(found);
    if (job->outcome.ok()) count_merged(job->plan.merged());
    gap_.ended(job->tally, job->outcome.ok());
    return job;
  }

  const std::shared_ptr<Files> files_;
  Mutex mutex_;
  std::deque<std::unique_ptr<HttpJob>> jobs_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<SpanRequest*> idle_ LOWTIDE_GUARDED_BY(mutex_);
  LaneGap gap_;  // changed with the lock held, except for best()
  const bool merge_;
  std::vector<std::unique_ptr<SpanRequest>> requests_;
  Transport transport_;  // the last member: its thread ends first
};

}  // namespace

std::unique_ptr<Lane> make_http_lane(std::shared_ptr<Files> files, const LaneOptions& options) {
  return std::make_unique<HttpLane>(std::move(files), options);
}

}  // namespace lowtide
