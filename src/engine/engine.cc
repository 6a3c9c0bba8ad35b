#include "engine/engine.h"

#include <algorithm>
#include <thread>

#include "core/checked.h"
#include "engine/memory_engine.h"
#include "engine/remote_engine.h"
#include "engine/routed_engine.h"
#include "http/transport.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/files.h"
#include "os/ring.h"

namespace lowtide {
namespace {

// Buffers take 1/8 of the budget: look-ahead gains more from the rest.
constexpr std::uint64_t kBufferShare = 8;
constexpr std::uint64_t kLeastBufferBytes = 32 * 1024;
constexpr std::uint64_t kMostBufferBytes = 8 * 1024 * 1024;  // 64 KiB for each read in flight
constexpr std::uint64_t kThreadBufferBytes = 3 * 4096;  // the least that one thread of a pool needs
// Measured with direct reads of 1 KiB from an NVMe disk: 174 thousand per second at depth 64, 231
// at 128, 217 at 256.
constexpr unsigned kRingDepth = 128;
// Without a ring, each thread is one read in flight. Measured: 86 thousand reads per second with 32
// threads, 112 with 128; each thread costs a stack and a buffer.
constexpr unsigned kMostColdThreads = 64;
// Threads that copy from the page cache share the memory's bandwidth, and the program needs
// processors too.
constexpr unsigned kMostHotThreads = 4;
// Under a small budget too: one at a time would take an age.
constexpr std::uint64_t kLeastRequestsInFlight = 4;
// Blocks on their way into a cache_dir: a sixteenth of the budget, but enough to keep a server busy
// while one of them is written.
constexpr std::uint64_t kBlockShare = 16;
constexpr std::uint64_t kLeastBlocks = 2;
constexpr std::uint64_t kMostBlocks = 32;

unsigned hot_threads() {
  return std::clamp(std::thread::hardware_concurrency(), 2U, kMostHotThreads);
}

std::unique_ptr<Lane> cold_lane(const std::shared_ptr<Files>& files, const ReadOptions& wanted,
                                bool ring, std::uint64_t bounce_bytes) {
  LaneOptions options;
  if (wanted.gap_bytes) {
    options.most_gap_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(*wanted.gap_bytes, UINT32_MAX));
  }
  options.access = wanted.cache == CacheMode::drop ? Access::direct : Access::buffered;
  options.bounce_bytes = bounce_bytes;
  if (ring) {
    options.width = kRingDepth;
    return make_uring_lane(files, options);
  }
  options.width = static_cast<unsigned>(
      std::clamp<std::uint64_t>(bounce_bytes / kThreadBufferBytes, 1, kMostColdThreads));
  return make_pread_lane(files, options);
}

// `rings`: io_uring is available. `by_name`: the user asked for the engine uring, which is one ring
// that one thread feeds.
std::unique_ptr<Lane> hot_lane(const std::shared_ptr<Files>& files, bool rings, bool by_name,
                               std::uint64_t bounce_bytes) {
  LaneOptions options;
  options.merge = false;
  options.rings = rings;
  if (by_name) {
    options.width = kRingDepth;
    options.bounce_bytes = bounce_bytes;
    return make_uring_lane(files, options);
  }
  options.width = hot_threads();
  options.bounce_bytes = bounce_bytes >= options.width * kThreadBufferBytes ? bounce_bytes : 0;
  return make_pread_lane(files, options);
}

}  // namespace

Outcome Engine::read(std::span<const Read> reads) noexcept {
  for (std::size_t first = 0; first < reads.size(); first += kMaxReads) {
    Waiter waiter;
    waiter.reads = reads.subspan(first, std::min(kMaxReads, reads.size() - first));
    submit(waiter);
    Outcome outcome = waiter.wait();
    if (!outcome.ok()) {
      outcome.read += static_cast<std::uint32_t>(first);
      return outcome;
    }
  }
  return {};
}

Budget::Entry engine_buffers(std::uint64_t budget_bytes) {
  const std::uint64_t bytes =
      std::clamp(budget_bytes / kBufferShare, kLeastBufferBytes, kMostBufferBytes);
  return {.what = "read buffers",
          .bytes = round_down(bytes, 4096),
          .divisor = kBufferShare,
          .most_bytes = kMostBufferBytes};
}

namespace {

// The engine for the shards that are files.
std::unique_ptr<Engine> local_engine(const std::shared_ptr<Files>& files,
                                     const ReadOptions& options, Claim claim,
                                     std::uint64_t buffers) {
  const std::string no_ring = Ring::probe();
  const bool wants_ring = options.engine == EngineKind::uring;
  if (wants_ring && !no_ring.empty()) {
    throw IoError(ENOSYS, "engine uring", "", std::nullopt,
                  no_ring + "; the engines auto and pread work without it");
  }
  const bool ring = no_ring.empty() && options.engine != EngineKind::pread;

  RoutedEngineOptions routed;
  // Cached reads go straight to their targets, except for cells that lie close together. So most of
  // the room is for the disk.
  routed.claim = std::move(claim);
  routed.hot = hot_lane(files, ring, wants_ring, buffers / 8);
  routed.cold = cold_lane(files, options, ring, buffers - buffers / 8);
  routed.hot_name = wants_ring ? "uring" : "pread";
  routed.cold_name = ring ? "uring" : "pread";
  routed.past_cache = options.past_cache;
  routed.fills_cache = options.cache == CacheMode::keep;
  if (options.engine != EngineKind::automatic) routed.reason = "requested";
  if (options.engine == EngineKind::automatic && !no_ring.empty()) routed.no_ring = no_ring;
  if (options.cache == CacheMode::drop) files->advise_on_open(Advice::random);
  return std::make_unique<RoutedEngine>(files, std::move(routed));
}

// The engine for data with objects. `local` may be nullptr.
std::unique_ptr<Engine> remote_engine(const std::shared_ptr<Files>& files,
                                      const ReadOptions& options, std::unique_ptr<Engine> local,
                                      Claim claim, std::uint64_t buffers) {
  const bool by_name = options.engine == EngineKind::pread || options.engine == EngineKind::uring;
  if (by_name && local == nullptr) {
    throw IoError(ENOTSUP, options.engine == EngineKind::pread ? "engine pread" : "engine uring",
                  files->shards()->path(0), std::nullopt,
                  "it reads only local files; use the engine auto or memory for objects");
  }
  LaneOptions lane;
  if (options.gap_bytes) {
    lane.most_gap_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(*options.gap_bytes, UINT32_MAX));
  }
  const std::uint64_t most = std::max(1U, options.requests);
  lane.width = static_cast<unsigned>(std::clamp<std::uint64_t>(
      buffers / Transport::kBytesInFlight, std::min(most, kLeastRequestsInFlight), most));
  return make_remote_engine(files, make_http_lane(files, lane), std::move(local), std::move(claim));
}

// The same with copies in options.cache_dir, which an engine for local files reads.
std::unique_ptr<Engine> tiered_engine(const Files& files, const ReadOptions& options,
                                      std::unique_ptr<Engine> source, Budget& budget,
                                      const Budget::Entry& buffers) {
  const std::uint64_t blocks = std::clamp(
      budget.limit_bytes() / (kBlockShare * KeptObject::kBlockBytes), kLeastBlocks, kMostBlocks);
  std::vector<Claim> claims =
      budget.claim_all({buffers,
                        {.what = "blocks of objects",
                         .bytes = blocks * KeptObject::kBlockBytes,
                         .divisor = kBlockShare,
                         .most_bytes = kMostBlocks * KeptObject::kBlockBytes}});
  Tier tier = open_tier(*files.shards(), options.cache_dir, options.cache_bytes);
  auto copies = local_engine(tier.copies, options, std::move(claims[0]), buffers.bytes);
  return make_tiered_engine(std::move(tier), std::move(source), std::move(copies),
                            std::move(claims[1]), blocks);
}

}  // namespace

std::unique_ptr<Engine> open_engine(std::shared_ptr<Files> files, const ReadOptions& options,
                                    Budget& budget, bool allow_memory) {
  const std::size_t remote = files->shards()->remote_count();
  const bool both = remote > 0 && remote < files->shards()->size();
  Budget::Entry entry = engine_buffers(budget.limit_bytes());
  if (both) entry.bytes = round_down(entry.bytes / 2, 4096);
  std::unique_ptr<Engine> engine;
  if (remote == 0 || both) {
    engine =
        local_engine(files, options, std::move(budget.claim_all({entry}).front()), entry.bytes);
  }
  if (remote > 0) {
    engine = remote_engine(files, options, std::move(engine),
                           std::move(budget.claim_all({entry}).front()), entry.bytes);
    if (!options.cache_dir.empty())
      engine = tiered_engine(*files, options, std::move(engine), budget, entry);
  }

  const std::uint64_t total = files->total_bytes();
  const bool fits = total <= budget.free_bytes();
  if (options.engine == EngineKind::memory) {
    if (!fits) {
      throw std::invalid_argument("engine memory: the data takes " + format_bytes(total) +
                                  ", but a memory of " + format_bytes(budget.limit_bytes()) +
                                  " leaves " + format_bytes(budget.free_bytes()) +
                                  " for it; use more memory or another engine");
    }
    auto memory = make_memory_engine(*files, std::move(engine), budget, "requested");
    memory->expect_all();
    return memory;
  }
  if (options.engine == EngineKind::automatic && allow_memory && fits) {
    return make_memory_engine(*files, std::move(engine), budget,
                              "the data (" + format_bytes(total) + ") fits into the memory of " +
                                  format_bytes(budget.limit_bytes()));
  }
  return engine;
}

}  // namespace lowtide
