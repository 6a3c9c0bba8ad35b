#include "face/store.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "engine/cache_map.h"
#include "engine/outcome.h"
#include "lowtide/bytes.h"
#include "lowtide/interrupt.h"
#include "system/limits.h"

namespace lowtide {
namespace {

ReadOptions with_budget(ReadOptions options) {
  if (options.memory_bytes == 0) options.memory_bytes = default_memory_bytes(SystemRoot{});
  return options;
}

}  // namespace

Store::Store(std::shared_ptr<const Shards> shards, const ReadOptions& options, Budget::Entry least,
             const Budget::Entry& held, std::shared_ptr<Store> lender)
    : options_(options),
      files_(std::make_shared<Files>(std::move(shards))),
      lender_(std::move(lender)),
      budget_(lender_ ? lender_->budget() : own_budget_.emplace(options.memory_bytes)) {
  if (!options_.cache_dir.empty() && files_->shards()->remote_count() == 0)
    throw std::invalid_argument(
        "cache_dir is for objects on servers, but these files are local; leave it out");
  if (lender_) lender_->release_idle_data();
  const std::size_t count = files_->shards()->size();
  if (count > 1 || !held.what.empty()) {
    const std::string files = "the table of " + std::to_string(count) + " files";
    shards_claim_ =
        budget_.claim(held.bytes + table_bytes(count), held.what.empty() ? files : held.what);
  }
  // Checked, then released: rows that are read by index go to the caller's memory.
  (void)budget_.claim_all({std::move(least), engine_buffers(budget_.limit_bytes())});
  decide_cache();
  engine_ = open_engine(files_, decided(), budget_);
}

std::uint64_t Store::table_bytes(std::size_t files) {
  return files * (Files::kShardBytes + CacheMap::kShardBytes);
}

void Store::decide_cache() {
  cache_ = options_.cache;
  cache_reason_ = "requested";
  if (cache_ != CacheMode::automatic) return;
  if (files_->shards()->remote_count() == files_->shards()->size() && options_.cache_dir.empty()) {
    cache_ = CacheMode::drop;
    cache_reason_ = "objects do not pass through the page cache";
    return;
  }
  const std::uint64_t total = files_->total_bytes();
  const auto available = available_bytes();
  cache_ = available && total < *available / 2 ? CacheMode::keep : CacheMode::drop;
  cache_reason_ = !available
                      ? "the available memory is unknown"
                      : format_bytes(total) +
                            (cache_ == CacheMode::keep ? " is less than" : " is at least") +
                            " half of the available memory (" + format_bytes(*available) + ")";
}

ReadOptions Store::decided() const {
  ReadOptions options = options_;
  options.cache = cache_;
  return options;
}

std::shared_ptr<Engine> Store::engine() {
  const MutexLock lock(mutex_);
  if (!engine_) engine_ = open_engine(files_, decided(), budget_, /*allow_memory=*/false);
  return engine_;
}

std::shared_ptr<Engine> Store::begin_run(const std::vector<Budget::Entry>& needs) {
  std::uint64_t bytes = 0;
  for (const Budget::Entry& need : needs) bytes += need.bytes;
  const bool own_choice = options_.engine == EngineKind::automatic;
  // Another run would keep the engine that holds the data alive, so nothing would be freed. A plain
  // read ends soon.
  const bool others = runs_.fetch_add(1, std::memory_order_relaxed) > 0;
  try {
    if (own_choice && !others && budget_.claimable_bytes() < bytes) make_way();
    return engine();
  } catch (...) {
    end_run();
    throw;
  }
}

void Store::make_way() {
  std::weak_ptr<Engine> leaving;
  {
    const MutexLock lock(mutex_);
    if (!engine_ || !engine_->holds_data()) return;
    leaving = engine_;
    (void)take_engine();
  }
  while (!leaving.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Store::release_idle_data() {
  std::shared_ptr<Engine> idle;  // freed without the lock
  {
    const MutexLock lock(mutex_);
    if (options_.engine != EngineKind::automatic || !engine_ || !engine_->holds_data()) return;
    if (engine_.use_count() > 1) return;
    idle = take_engine();
  }
  idle.reset();
  (void)engine();  // so that there is room for its buffers, whatever the other store takes
}

std::shared_ptr<Engine> Store::take_engine() {
  const Traffic traffic = engine_->traffic();
  past_.bytes_read += traffic.bytes_read;
  past_.reads += traffic.reads;
  past_.merged += traffic.merged;
  return std::move(engine_);
}

void Store::read(std::span<const Read> reads, std::optional<std::uint64_t> asked_bytes) {
  if (reads.empty()) return;
  std::uint64_t bytes = asked_bytes.value_or(0);
  if (!asked_bytes) {
    for (const Read& read : reads) bytes += read.from.size_bytes;
  }
  const std::uint64_t before = now_ns();
  const Outcome outcome = engine()->read(reads);
  count_delivered(bytes, now_ns() - before);
  if (outcome.ok()) return;
  if (outcome.cancelled) throw Interrupted();
  const Read& failed = reads[outcome.read];
  throw_outcome(outcome, failed, files_->shards()->path(failed.from.shard), "");
}

void Store::count_delivered(std::uint64_t bytes, std::uint64_t wait_ns) {
  bytes_asked_.fetch_add(bytes, std::memory_order_relaxed);
  wait_ns_.fetch_add(wait_ns, std::memory_order_relaxed);
}

void Store::watch(std::shared_ptr<const Pool> pool) {
  const MutexLock lock(mutex_);
  std::erase_if(pools_, [](const auto& known) { return known.expired(); });
  pools_.push_back(std::move(pool));
}

Stats Store::stats() {
  const std::shared_ptr<Engine> engine = this->engine();
  const Traffic traffic = engine->traffic();
  const MutexLock lock(mutex_);
  Stats stats;
  stats.bytes_asked = bytes_asked_.load(std::memory_order_relaxed);
  stats.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  stats.bytes_read = past_.bytes_read + traffic.bytes_read;
  stats.reads = past_.reads + traffic.reads;
  stats.merged = past_.merged + traffic.merged;
  stats.gap_bytes = engine->prospect().gap_bytes;
  stats.engine = engine->name();
  stats.engine_reason = engine->reason();
  stats.cache = cache_ == CacheMode::keep ? "keep" : "drop";
  stats.cache_reason = cache_reason_;
  stats.memory_limit_bytes = budget_.limit_bytes();
  for (const Budget::Entry& claim : budget_.claims())
    stats.memory_claims.emplace_back(claim.what, claim.bytes);
  for (const auto& known : pools_) {
    if (const auto pool = known.lock()) stats.held_by_you_bytes += pool->held_bytes();
  }
  return stats;
}

StoreHolder::StoreHolder(std::string what, std::shared_ptr<const Shards> of,
                         const ReadOptions& with, Budget::Entry least, Budget::Entry held,
                         std::shared_ptr<StoreHolder> lender)
    : shards(std::move(of)),
      options(with_budget(with)),
      what_(std::move(what)),
      least_(std::move(least)),
      held_(std::move(held)),
      lender_(std::move(lender)) {
  here_.get().store = make_store();
}

std::shared_ptr<Store> StoreHolder::make_store() const {
  return std::make_shared<Store>(shards, options, least_, held_,
                                 lender_ ? lender_->store_of_run() : nullptr);
}

std::shared_ptr<Store> StoreHolder::store() {
  Here& here = here_.get();
  const MutexLock lock(here.mutex);
  if (closed_) throw std::invalid_argument(shards->path(0) + ": " + what_ + " is closed");
  if (!here.store) here.store = make_store();
  return here.store;
}

std::shared_ptr<Store> StoreHolder::store_of_run() {
  return closed() ? make_store() : store();
}

std::shared_ptr<StoreHolder> StoreHolder::joined(
    const Holders& holders, const std::function<std::shared_ptr<StoreHolder>()>& make) {
  Here& here = here_.get();
  {
    const MutexLock lock(here.mutex);
    std::erase_if(here.joined, [](const auto& known) { return known.expired(); });
    for (const auto& entry : here.joined) {
      std::shared_ptr<StoreHolder> known = entry.lock();
      if (known && known->parts_ == holders) return known;
    }
  }
  std::shared_ptr<StoreHolder> made = make();  // opens files, so without the lock
  made->parts_ = holders;
  const MutexLock lock(here.mutex);
  here.joined.push_back(made);
  return made;
}

void StoreHolder::close() {
  std::shared_ptr<Store> last;  // shut down without the lock
  Here& here = here_.get();
  const MutexLock lock(here.mutex);
  closed_ = true;
  last = std::move(here.store);
}

}  // namespace lowtide
