#include "lowtide/tokens.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>
#include <variant>

#include "core/hash.h"
#include "face/tokens_impl.h"
#include "order/random.h"
#include "os/limits.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kDocumentsShare = 8;  // of the budget for the table of documents, at most
constexpr std::uint64_t kPoolShare = 4;       // of the budget for the buffers of windows()
constexpr std::uint64_t kPoolBuffers = 4;
constexpr std::uint64_t kFingerprintReads = 64;
constexpr std::uint64_t kFingerprintTokens = 32;  // in each

}  // namespace

TokenType parse_token_type(std::string_view name) {
  std::string known;
  for (int i = 0; i <= static_cast<int>(TokenType::i64); ++i) {
    const auto type = static_cast<TokenType>(i);
    if (name == token_type_name(type)) return type;
    known += (known.empty() ? "" : ", ") + std::string(token_type_name(type));
  }
  throw std::invalid_argument("dtype: tokens cannot be delivered as \"" + std::string(name) +
                              "\"; known are " + known);
}

void check_block(std::uint64_t block_size, std::uint64_t tokens) {
  if (block_size == 0) throw std::invalid_argument("block_size: must be at least 1");
  if (block_size >= tokens) {
    throw std::invalid_argument("block_size: a window of " + std::to_string(block_size) +
                                " + 1 tokens does not fit into a stream of " +
                                std::to_string(tokens));
  }
}

TokenBatch::TokenBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenBatch::TokenBatch(TokenBatch&&) noexcept = default;
TokenBatch& TokenBatch::operator=(TokenBatch&&) noexcept = default;
TokenBatch::~TokenBatch() = default;

std::uint64_t TokenBatch::rows() const {
  return impl_->lease->samples.size();
}
std::uint64_t TokenBatch::block_size() const {
  return impl_->windows->options().block_size;
}
std::byte* TokenBatch::x() const {
  return impl_->lease->memory.data();
}
std::byte* TokenBatch::y() const {
  return x() + impl_->shape.y_bytes;
}
std::span<const std::uint64_t> TokenBatch::samples() const {
  return impl_->lease->samples;
}
std::uint64_t TokenBatch::step() const {
  return impl_->lease.step;
}
std::uint64_t TokenBatch::epoch() const {
  return impl_->lease.epoch;
}

std::int32_t* TokenBatch::positions() const {
  if (!impl_->windows->options().separate) return nullptr;
  return reinterpret_cast<std::int32_t*>(x() + impl_->shape.positions_bytes);
}

std::span<std::int32_t> TokenBatch::cu_seqlens() const {
  if (!impl_->windows->options().separate) return {};
  const auto* count = reinterpret_cast<const std::uint64_t*>(x() + impl_->shape.cu_count_bytes);
  return {reinterpret_cast<std::int32_t*>(x() + impl_->shape.cu_seqlens_bytes), *count};
}

// The parent's live part, whose locks may have been held at the fork, is left alone.
void Tokens::Impl::notice_fork() {
  if (pid_ == process_id()) return;
  new (&mutex_) std::mutex;
  (void)live_.release();
  pid_ = process_id();
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
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    targets.push_back(raw + i * windows->sample_bytes());
  }
  std::vector<Read> reads;
  windows->locate(0, samples, targets, reads);
  store->read(reads);
  windows->deliver(samples, std::vector<const std::byte*>(targets.begin(), targets.end()),
                   lease->memory.data());
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

Tokens::Tokens(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::uint64_t Tokens::size() const {
  return impl_->stream->size();
}
const DType& Tokens::dtype() const {
  return impl_->stream->dtype();
}
const std::string& Tokens::format() const {
  return impl_->stream->format();
}
const std::vector<std::string>& Tokens::paths() const {
  return impl_->stream->paths();
}
std::uint64_t Tokens::memory_bytes() const {
  return impl_->holder->options.memory_bytes;
}
std::optional<std::uint64_t> Tokens::eot() const {
  return impl_->eot;
}

void Tokens::read(std::uint64_t first, std::uint64_t count, std::byte* out) const {
  const TokenStream& stream = *impl_->stream;
  if (first > stream.size() || count > stream.size() - first) {
    throw std::out_of_range("tokens " + std::to_string(first) + " to " +
                            std::to_string(first + count) + " are outside the " +
                            std::to_string(stream.size()) + " of the stream");
  }
  std::vector<Read> reads;
  stream.locate(first, count, 0, out, reads);
  impl_->holder->store()->read(reads);
}

TokenBatch Tokens::windows(RowList starts, std::uint64_t block_size, std::string_view dtype) const {
  const TokenType to = parse_token_type(dtype);
  check_block(block_size, size());
  const std::uint64_t last = size() - block_size - 1;
  std::vector<std::uint64_t> samples;
  std::visit(
      [&](const auto& all) {
        samples.reserve(all.size());
        for (const auto start : all) {
          // A negative number becomes a huge one.
          if (static_cast<std::uint64_t>(start) > last) {
            throw std::out_of_range("starts: entry " + std::to_string(samples.size()) + " is " +
                                    std::to_string(start) + "; a window of " +
                                    std::to_string(block_size) + " + 1 tokens starts from 0 to " +
                                    std::to_string(last));
          }
          samples.push_back(static_cast<std::uint64_t>(start));
        }
      },
      starts);
  return impl_->windows(std::move(samples), block_size, to);
}

TokenBatch Tokens::batch(std::uint64_t batch_size, std::uint64_t block_size, std::uint64_t seed,
                         std::string_view dtype) const {
  const TokenType to = parse_token_type(dtype);
  check_block(block_size, size());
  if (batch_size == 0) throw std::invalid_argument("batch_size: must be at least 1");
  std::vector<std::uint64_t> starts(batch_size);
  make_random(batch_size, size() - block_size, seed)->fill(0, 0, starts);
  return impl_->windows(std::move(starts), block_size, to);
}

std::optional<std::uint64_t> Tokens::documents() const {
  if (!impl_->layouts.front().documents) return std::nullopt;
  std::uint64_t all = 0;
  for (const TokenLayout& layout : impl_->layouts) all += layout.documents->documents;
  return all;
}

void Tokens::document_offsets(std::uint64_t first, std::uint64_t count, std::int64_t* out) const {
  const auto documents = impl_->documents();
  if (!documents) throw std::invalid_argument(format() + " files do not tell their documents");
  if (first > documents->size() + 1 || count > documents->size() + 1 - first) {
    throw std::out_of_range("documents " + std::to_string(first) + " to " +
                            std::to_string(first + count) + " are outside the " +
                            std::to_string(documents->size()) + " of the stream");
  }
  std::vector<std::uint64_t> offsets(std::min<std::uint64_t>(count, 8192));
  for (std::uint64_t done = 0; done < count; done += offsets.size()) {
    offsets.resize(std::min<std::uint64_t>(offsets.size(), count - done));
    documents->offsets(first + done, offsets);
    std::copy(offsets.begin(), offsets.end(), out + done);
  }
}

std::uint64_t Tokens::fingerprint() const {
  return impl_->fingerprint();
}
Stats Tokens::stats() const {
  return impl_->holder->store()->stats();
}
void Tokens::close() {
  impl_->close();
}
bool Tokens::closed() const {
  return impl_->holder->closed();
}

}  // namespace lowtide
