#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "face/row_list.h"
#include "face/tokens_impl.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kDocumentsShare = 8;  // at most 1/8 of the budget for the document table
constexpr std::uint64_t kIndexStoreBytes =
    64 * 1024;                           // for reading in indexes, without their names
constexpr std::uint64_t kPoolShare = 4;  // 1/4 of the free budget for the buffers of windows()
constexpr std::uint64_t kPoolBuffers = 4;
constexpr std::uint64_t kPieceShare = 16;  // 1/16 of the budget for windows as stored, per call
constexpr std::uint64_t kLeastPieceBytes = 64 * 1024;
constexpr std::uint64_t kMostPieceBytes = 16 * 1024 * 1024;
constexpr std::uint64_t kFingerprintReads = 64;
constexpr std::uint64_t kFingerprintTokens = 32;  // per read

// Lets the pool keep as many buffers as fit into `most_bytes`, and sizes the share to match.
void keep_buffers(Share& share, Pool& pool, std::uint64_t each_bytes, std::uint64_t most_bytes) {
  const std::uint64_t buffers =
      std::min(kPoolBuffers, most_bytes / std::max<std::uint64_t>(1, each_bytes));
  pool.keep(buffers);
  if (share.resize(buffers * each_bytes)) return;
  pool.keep(0);
  (void)share.resize(0);
}

}  // namespace

Tokens::Impl::Live& Tokens::Impl::live(Here& here) {
  std::shared_ptr<Store> store = holder->store();
  if (!here.live) here.live = std::make_unique<Live>();
  here.live->store = std::move(store);
  return *here.live;
}

// The options of the store that indexes are read from. Its budget is claimed from the stream's.
ReadOptions Tokens::Impl::index_options() const {
  ReadOptions options = holder->options;
  options.memory_bytes = kIndexStoreBytes + 2 * Store::table_bytes(index_shards_->size());
  // The memory engine would hold the indexes, which can be as large as the data.
  if (options.engine == EngineKind::memory) options.engine = EngineKind::automatic;
  return options;
}

// The indexes have a store of their own, so that the data's engine does not hold them and reading
// in them goes on after close(). It is opened when a process first reads in them.
Documents::ReadIndexes Tokens::Impl::index_reader() const {
  const auto store =
      std::make_shared<PerProcess<Store>>([shards = index_shards_, options = index_options()] {
        return std::make_unique<Store>(shards, options, Budget::Entry{"one document", 8},
                                       Budget::Entry{});
      });
  return [store](std::span<const Read> reads) { store->get().read(reads); };
}

std::shared_ptr<const Documents> Tokens::Impl::documents() {
  if (layouts.empty()) return nullptr;
  Here& here = here_.get();
  const MutexLock lock(here.mutex);
  Live& live = this->live(here);
  if (!live.documents) {
    Budget& budget = live.store->budget();
    const std::uint64_t most = std::min(budget.limit_bytes() / kDocumentsShare,
                                        std::max<std::uint64_t>(budget.free_bytes() / 2, 4096));
    Claim claim = budget.claim(Documents::held_bytes(layouts, most) + index_options().memory_bytes,
                               "where documents start");
    live.documents = std::make_shared<const Documents>(stream, layouts, index_reader(), most);
    live.documents_claim = std::move(claim);
  }
  return live.documents;
}

// Buffers are reused because fresh pages cost several times as much as the read.
Tokens::Impl::Buffers Tokens::Impl::make_buffers(Store& store, const Call& call) const {
  Buffers made(call);
  made.windows = std::make_shared<const Windows>(
      std::vector<WindowsSource>{{.stream = stream}},
      WindowsOptions{.block_size = call.block_size, .to = call.to, .anywhere = true});
  // Long lists are read and widened in slices, so that only the result grows with them.
  const std::uint64_t piece_bytes =
      std::clamp(store.budget().limit_bytes() / kPieceShare, kLeastPieceBytes, kMostPieceBytes);
  const std::uint64_t each = made.windows->sample_bytes();
  made.piece_rows =
      std::min(call.rows, std::clamp<std::uint64_t>(piece_bytes / each, 1, kTakeRows));
  const std::uint64_t bytes = made.windows->batch_bytes(call.rows) + made.piece_rows * each;
  made.pool = std::make_shared<Pool>(bytes, /*samples=*/0, /*keep=*/0);
  made.bytes = bytes + (call.keep_starts ? call.rows * sizeof(std::uint64_t) : 0);
  made.share = std::make_unique<Share>(
      store.budget(), "windows",
      [pool = made.pool, each_bytes = made.bytes](Share& share, std::uint64_t most_bytes) {
        keep_buffers(share, *pool, each_bytes, most_bytes);
      });
  store.watch(made.pool);
  return made;
}

Batch Tokens::Impl::windows(std::uint64_t rows, const FillStarts& fill, std::uint64_t block_size,
                            TokenType to, bool keep_starts, const std::function<void()>& between) {
  const Call call{rows, block_size, to, keep_starts};
  std::shared_ptr<Store> store;
  std::shared_ptr<const Windows> windows;
  std::shared_ptr<Pool> pool;
  std::uint64_t piece_rows = 0;
  {
    Here& here = here_.get();
    const MutexLock lock(here.mutex);
    Live& live = this->live(here);
    if (!live.buffers || live.buffers->call != call) {
      live.buffers.reset();
      live.buffers.emplace(make_buffers(*live.store, call));
    }
    Buffers& buffers = *live.buffers;
    // The room may have grown or been given back since the last call.
    if (buffers.share->bytes() < kPoolBuffers * buffers.bytes) {
      keep_buffers(*buffers.share, *buffers.pool, buffers.bytes,
                   std::max(buffers.share->bytes(), buffers.share->most_bytes() / kPoolShare));
    }
    piece_rows = buffers.piece_rows;
    store = live.store;
    windows = buffers.windows;
    pool = buffers.pool;
  }
  Batch batch = pool->take();
  Buffer& buffer = Buffer::of(batch);
  std::byte* const x = buffer.memory.data();
  std::byte* const y = x + windows->shape(rows).y_bytes;
  std::byte* const raw = x + windows->batch_bytes(rows);
  const std::uint64_t row_bytes = block_size * token_bytes(to);
  std::vector<std::uint64_t> starts(piece_rows);
  std::vector<std::byte*> targets(piece_rows);
  for (std::size_t i = 0; i < piece_rows; ++i) targets[i] = raw + i * windows->sample_bytes();
  std::vector<Read> reads;
  reads.reserve(piece_rows);
  for (std::uint64_t first = 0; first < rows; first += piece_rows) {
    if (first > 0 && between) between();
    const std::span piece(starts.data(), std::min(piece_rows, rows - first));
    fill(first, piece);
    if (keep_starts) buffer.samples.insert(buffer.samples.end(), piece.begin(), piece.end());
    reads.clear();
    windows->locate(0, 0, piece, targets, reads);
    store->read(reads);
    windows->widen_rows({.samples = piece, .bytes = raw}, x + first * row_bytes,
                        y + first * row_bytes);
  }
  buffer.rows = rows;
  windows->describe(rows, buffer.memory.bytes(), &buffer.columns);
  pool->deliver(batch);
  return batch;
}

std::uint64_t Tokens::Impl::fingerprint() {
  if (const std::uint64_t known = fingerprint_; known != 0) return known;
  std::vector<Read> reads;
  std::vector<std::byte> sampled(kFingerprintReads * kFingerprintTokens * stream->item_bytes());
  const std::uint64_t count = std::min(kFingerprintTokens, stream->size());
  const std::uint64_t last = stream->size() - count;
  for (std::uint64_t i = 0; i < kFingerprintReads; ++i) {
    // The first tokens, the last ones and some between. Not last * i / kSteps, which can overflow.
    constexpr std::uint64_t kSteps = kFingerprintReads - 1;
    const std::uint64_t first = last / kSteps * i + last % kSteps * i / kSteps;
    stream->locate(first, count, 0, sampled.data() + i * count * stream->item_bytes(), reads);
  }
  reads.resize(std::min<std::size_t>(reads.size(), kFingerprintReads));
  holder->store_of_run()->read(reads);
  const std::uint64_t hash = hash_with(stream->layout_hash(), std::span<const std::byte>(sampled));
  fingerprint_ = hash;
  return hash;
}

void Tokens::Impl::close() {
  std::unique_ptr<Live> last;
  {
    Here& here = here_.get();
    const MutexLock lock(here.mutex);
    last = std::move(here.live);
  }
  last.reset();
  holder->close();
}

}  // namespace lowtide
