#include <algorithm>
#include <new>
#include <utility>

#include "core/hash.h"
#include "face/tokens_impl.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kDocumentsShare = 8;  // of the budget for the table of documents, at most
constexpr std::uint64_t kPoolShare = 4;       // of the budget for the buffers of windows()
constexpr std::uint64_t kPoolBuffers = 4;
constexpr std::uint64_t kFingerprintReads = 64;
constexpr std::uint64_t kFingerprintTokens = 32;  // in each

}  // namespace

// The parent's live part, whose locks may have been held at the fork, is left alone.
void Tokens::Impl::notice_fork() {
  fork_.look([this] {
    new (&mutex_) std::mutex;
    (void)live_.release();
  });
}

Tokens::Impl::Live& Tokens::Impl::live() {
  std::shared_ptr<Store> store = holder->store();
  if (!live_) live_ = std::make_unique<Live>();
  live_->store = std::move(store);
  return *live_;
}

std::shared_ptr<const Documents> Tokens::Impl::documents() {
  if (index_shards_.empty()) return nullptr;
  notice_fork();
  const std::lock_guard lock(mutex_);
  Live& live = this->live();
  if (!live.documents) {
    Budget& budget = live.store->budget();
    const std::uint64_t most = std::min(budget.limit_bytes() / kDocumentsShare,
                                        std::max<std::uint64_t>(budget.free_bytes() / 2, 4096));
    live.documents_claim =
        budget.claim(Documents::table_bytes(layouts, most), "where documents start");
    live.documents = std::make_shared<const Documents>(
        stream, layouts, std::make_shared<Files>(index_shards_), most);
  }
  return live.documents;
}

// Buffers come back and serve again: fresh pages cost several times what the read costs.
void Tokens::Impl::make_pool(Live* live, std::uint64_t rows, std::uint64_t block_size,
                             TokenType to) {
  live->windows = std::make_shared<const Windows>(
      std::vector<WindowsSource>{{.stream = stream}},
      WindowsOptions{.block_size = block_size, .to = to, .anywhere = true});
  live->rows = rows;
  live->pool.reset();
  live->pool_claim.release();
  const std::uint64_t bytes =
      live->windows->batch_bytes(rows) + rows * live->windows->sample_bytes();
  const std::uint64_t most = live->store->budget().free_bytes() / kPoolShare;
  const std::uint64_t keep = std::min(kPoolBuffers, most / std::max<std::uint64_t>(1, bytes));
  if (keep > 0) live->pool_claim = live->store->budget().claim(keep * bytes, "windows");
  live->pool = std::make_shared<Pool>(bytes, rows, keep);
  live->store->watch(live->pool);
}

TokenBatch Tokens::Impl::windows(std::vector<std::uint64_t> starts, std::uint64_t block_size,
                                 TokenType to) {
  std::shared_ptr<Store> store;
  std::shared_ptr<const Windows> windows;
  std::shared_ptr<Pool> pool;
  {
    notice_fork();
    const std::lock_guard lock(mutex_);
    Live& live = this->live();
    if (!live.windows || live.rows != starts.size() ||
        live.windows->options().block_size != block_size || live.windows->options().to != to) {
      make_pool(&live, starts.size(), block_size, to);
    }
    store = live.store;
    windows = live.windows;
    pool = live.pool;
  }
  Lease lease = pool->take();
  lease->samples = std::move(starts);
  const std::span<const std::uint64_t> samples = lease->samples;
  std::byte* const raw = lease->memory.data() + windows->batch_bytes(samples.size());
  std::vector<std::byte*> targets(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) targets[i] = raw + i * windows->sample_bytes();
  std::vector<Read> reads;
  reads.reserve(samples.size());
  windows->locate(0, samples, targets, reads);
  store->read(reads);
  windows->deliver(samples, std::span<std::byte* const>(targets), lease->memory.data());
  lease.deliver();
  return TokenBatch(std::make_unique<TokenBatch::Impl>(std::move(lease), std::move(windows)));
}

std::uint64_t Tokens::Impl::fingerprint() {
  notice_fork();
  {
    const std::lock_guard lock(mutex_);
    if (fingerprint_) return *fingerprint_;
  }
  std::vector<Read> reads;
  std::vector<std::byte> sampled(kFingerprintReads * kFingerprintTokens * stream->item_bytes());
  const std::uint64_t count = std::min(kFingerprintTokens, stream->size());
  const std::uint64_t last = stream->size() - count;
  for (std::uint64_t i = 0; i < kFingerprintReads; ++i) {
    // The first tokens, the last ones, and some between; last * i could overflow.
    constexpr std::uint64_t kSteps = kFingerprintReads - 1;
    const std::uint64_t first = last / kSteps * i + last % kSteps * i / kSteps;
    stream->locate(first, count, 0, sampled.data() + i * count * stream->item_bytes(), reads);
  }
  reads.resize(std::min<std::size_t>(reads.size(), kFingerprintReads));
  holder->store_of_run()->read(reads);
  const std::uint64_t hash = hash_with(stream->layout_hash(), std::span<const std::byte>(sampled));
  const std::lock_guard lock(mutex_);
  fingerprint_ = hash;
  return hash;
}

void Tokens::Impl::close() {
  std::unique_ptr<Live> last;
  {
    notice_fork();
    const std::lock_guard lock(mutex_);
    last = std::move(live_);
  }
  last.reset();
  holder->close();
}

}  // namespace lowtide
