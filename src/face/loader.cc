#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hash.h"
#include "core/step_hook.h"
#include "face/loader_impl.h"
#include "order/mixed.h"
#include "order/random.h"

namespace lowtide {
namespace {

std::unique_ptr<Order> make_source_order(OrderKind kind, std::uint64_t positions,
                                         std::uint64_t limit, std::uint64_t seed) {
  switch (kind) {
    case OrderKind::shuffle:
      return make_shuffle(limit, seed);
    case OrderKind::random:
      return make_random(positions, limit, seed);
    case OrderKind::sequential:
      break;
  }
  return make_sequential(limit);
}

void check_options(const LoaderOptions& options) {
  if (options.prefetch == 0) throw std::invalid_argument("prefetch must be at least 1, not 0");
  if (!options.drop_last && options.world_size > 1) {
    throw std::invalid_argument("drop_last must be true with a world_size of " +
                                std::to_string(options.world_size) +
                                ": a short last step would not be the same for all ranks");
  }
}

}  // namespace

Loader::Impl::Impl(Sources sources, bool mixture, const LoaderOptions& options)
    : sources_(std::move(sources)), mixed_(mixture), options_(options) {
  if (sources_.empty()) throw std::invalid_argument("the list of sources is empty; give one");
  check_options(options_);
  std::vector<double> weights;
  for (const auto& [tokens, weight] : sources_) {
    if (tokens->holder->closed()) (void)tokens->holder->store();  // throws
    check_block(options_.block_size, tokens->stream->size());
    weights.push_back(weight);
  }
  (void)Mixture(weights);  // checks the weight of a single source too, although it has no effect
  holder_ = make_holder();
  make_windows();
  make_schedule();
  run_ = std::make_unique<Run>(inputs(), schedule_);
}

// A loader over one stream, without a budget of its own, reads through its tokens. Any other loader
// has separate files and a separate budget.
std::shared_ptr<StoreHolder> Loader::Impl::make_holder() const {
  const StoreHolder& first = *sources_.front().first->holder;
  if (sources_.size() == 1 && options_.memory_bytes == 0) {
    return sources_.front().first->holder;
  }
  ReadOptions options = first.options;
  const auto shards = std::make_shared<Shards>();
  for (const auto& [tokens, weight] : sources_) {
    const StoreHolder& holder = *tokens->holder;
    for (std::size_t i = 0; i < holder.shards->size(); ++i) shards->add((*holder.shards)[i]);
    options.memory_bytes = std::max(options.memory_bytes, holder.options.memory_bytes);
    if (holder.options.engine != options.engine) options.engine = EngineKind::automatic;
    if (holder.options.cache != options.cache) options.cache = CacheMode::automatic;
  }
  if (options_.memory_bytes != 0) options.memory_bytes = options_.memory_bytes;
  const std::uint64_t held_bytes = shards->held_bytes();
  return std::make_shared<StoreHolder>("the loader", shards, options, Budget::Entry{"one token", 8},
                                       held_bytes);
}

void Loader::Impl::make_windows() {
  std::vector<WindowsSource> sources;
  std::uint32_t first_shard = 0;
  for (const auto& [tokens, weight] : sources_) {
    WindowsSource source{.stream = tokens->stream, .first_shard = first_shard};
    if (options_.separate_documents) {
      source.documents = tokens->documents();
      source.eot = tokens->eot;
      if (!source.documents && !source.eot) {
        throw std::invalid_argument("documents: " + tokens->stream->format() +
                                    " files do not record where documents start, so they cannot "
                                    "be separated; give eot, the token between documents, when "
                                    "opening them");
      }
    }
    first_shard += static_cast<std::uint32_t>(tokens->stream->shards()->size());
    sources.push_back(std::move(source));
  }
  windows_ = std::make_shared<const Windows>(
      std::move(sources), WindowsOptions{.block_size = options_.block_size,
                                         .to = parse_token_type(options_.dtype),
                                         .anywhere = options_.order == OrderKind::random,
                                         .separate = options_.separate_documents});
  if (windows_->reads_per_part() > Engine::kMaxReads) {
    throw std::invalid_argument(
        "block_size: a window of " + std::to_string(options_.block_size) + " + 1 tokens can span " +
        std::to_string(windows_->reads_per_part()) + " separate places in files, but at most " +
        std::to_string(Engine::kMaxReads) + " can be read together; use a smaller block_size");
  }
}

// How many positions a source has in an epoch: one per window, counting windows that do not
// overlap.
std::uint64_t Loader::Impl::positions_of(std::size_t source) const {
  const std::uint64_t tokens = sources_[source].first->stream->size();
  return (tokens - 1) / options_.block_size;
}

void Loader::Impl::make_schedule() {
  std::uint64_t positions = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) positions += positions_of(i);
  schedule_ = {.size = positions,
               .batch_size = options_.batch_size,
               .rank = options_.rank,
               .world_size = options_.world_size,
               .drop_last = options_.drop_last,
               .epochs = options_.epochs.value_or(Schedule::kForever),
               .continuous = mixed_};
  check_shares(schedule_);
  const std::uint64_t step = schedule_.positions_per_step();
  if (positions >= step || !options_.drop_last) return;
  if (options_.order != OrderKind::random) {
    throw std::invalid_argument(
        "batch_size: one step of " + std::to_string(options_.world_size) +
        (options_.world_size == 1 ? " rank needs " : " ranks needs ") + std::to_string(step) +
        " windows of block_size " + std::to_string(options_.block_size) + ", but there are " +
        std::to_string(positions) + "; use a smaller batch_size or block_size");
  }
  schedule_.size = step;
}

std::unique_ptr<Order> Loader::Impl::make_order() const {
  if (!mixed_) {
    return make_source_order(options_.order, schedule_.size, windows_->size(), options_.seed);
  }
  std::vector<double> weights;
  std::vector<std::unique_ptr<Order>> orders;
  std::vector<std::uint64_t> limits;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    weights.push_back(sources_[i].second);
    limits.push_back(windows_->size_of(i));
    // Sources of the same size must not be shuffled the same way.
    const std::uint64_t seed = i == 0 ? options_.seed : hash_with(options_.seed, i);
    orders.push_back(make_source_order(options_.order, positions_of(i), limits.back(), seed));
  }
  return std::make_unique<MixedOrder>(Mixture(weights), std::move(orders), limits);
}

RunInputs Loader::Impl::inputs() const {
  return {.dataset = windows_,
          .holder = holder_,
          .make_order = [this] { return make_order(); },
          .most_ahead = options_.prefetch.value_or(0)};
}

Loader::Loader(const Tokens& tokens, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(Impl::Sources{{tokens.impl_, 1.0}}, false, options)) {}
Loader::Loader(std::span<const std::pair<Tokens, double>> sources, const LoaderOptions& options) {
  Impl::Sources made;
  for (const auto& [tokens, weight] : sources) made.emplace_back(tokens.impl_, weight);
  impl_ = std::make_unique<Impl>(std::move(made), true, options);
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

Batch Loader::next() {
  Batch batch = impl_->run().next();
  if (batch) report_step(batch.epoch(), batch.step());
  return batch;
}

std::optional<Batch> Loader::next_for(std::chrono::milliseconds timeout) {
  std::optional<Batch> batch = impl_->run().next_for(timeout);
  if (batch && *batch) report_step(batch->epoch(), batch->step());
  return batch;
}
Batch Loader::next_in(std::uint64_t epoch) {
  return this->epoch() == epoch ? next() : Batch();
}
void Loader::cancel() noexcept {
  impl_->run().cancel();
}
std::uint64_t Loader::steps() const {
  return impl_->run().schedule().steps_in_epoch();
}
std::uint64_t Loader::steps_left() const {
  return impl_->ended() ? 0 : impl_->now().left;
}
std::uint64_t Loader::epoch() const {
  return impl_->now().epoch;
}
std::uint64_t Loader::step() const {
  return impl_->now().step;
}
void Loader::seek(std::uint64_t step, std::optional<std::uint64_t> epoch) {
  impl_->seek(step, epoch.value_or(impl_->now().epoch));
}
void Loader::skip(std::uint64_t first, std::uint64_t last, std::optional<std::uint64_t> epoch) {
  impl_->skip(first, last, epoch.value_or(impl_->now().epoch));
}
std::optional<Loader::When> Loader::when(std::uint64_t token, std::uint64_t epoch,
                                         std::size_t source) const {
  return impl_->when(token, epoch, source);
}
LoaderState Loader::state() const {
  return impl_->state();
}
void Loader::restore(const LoaderState& state) {
  impl_->restore(state);
}
Stats Loader::stats() const {
  return impl_->run().store().stats();
}

}  // namespace lowtide
