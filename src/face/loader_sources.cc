#include "face/loader_sources.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hash.h"
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

LoaderSources::LoaderSources(Weighted sources, bool mixture, const LoaderOptions& options)
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
  windows_ = make_windows();
}

// A loader over one stream, without a budget of its own, reads through its tokens. Any other loader
// has separate files and a separate budget.
std::shared_ptr<StoreHolder> LoaderSources::make_holder() const {
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

std::shared_ptr<const Windows> LoaderSources::make_windows() const {
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
  auto windows = std::make_shared<const Windows>(
      std::move(sources), WindowsOptions{.block_size = options_.block_size,
                                         .to = parse_token_type(options_.dtype),
                                         .anywhere = options_.order == OrderKind::random,
                                         .separate = options_.separate_documents});
  if (windows->reads_per_part() > Engine::kMaxReads) {
    throw std::invalid_argument(
        "block_size: a window of " + std::to_string(options_.block_size) + " + 1 tokens can span " +
        std::to_string(windows->reads_per_part()) + " separate places in files, but at most " +
        std::to_string(Engine::kMaxReads) + " can be read together; use a smaller block_size");
  }
  return windows;
}

// How many positions a source has in an epoch: one per window, counting windows that do not
// overlap.
std::uint64_t LoaderSources::positions_of(std::size_t source) const {
  const std::uint64_t tokens = sources_[source].first->stream->size();
  return (tokens - 1) / options_.block_size;
}

Schedule LoaderSources::schedule() const {
  std::uint64_t positions = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) positions += positions_of(i);
  Schedule schedule{.size = positions,
                    .batch_size = options_.batch_size,
                    .rank = options_.rank,
                    .world_size = options_.world_size,
                    .drop_last = options_.drop_last,
                    .epochs = options_.epochs.value_or(Schedule::kForever),
                    .continuous = mixed_};
  check_shares(schedule);
  const std::uint64_t step = schedule.positions_per_step();
  if (positions >= step || !options_.drop_last) return schedule;
  if (options_.order != OrderKind::random) {
    throw std::invalid_argument(
        "batch_size: one step of " + std::to_string(options_.world_size) +
        (options_.world_size == 1 ? " rank needs " : " ranks needs ") + std::to_string(step) +
        " windows of block_size " + std::to_string(options_.block_size) + ", but there are " +
        std::to_string(positions) + "; use a smaller batch_size or block_size");
  }
  schedule.size = step;
  return schedule;
}

std::unique_ptr<Order> LoaderSources::make_order() const {
  if (!mixed_) {
    return make_source_order(options_.order, schedule().size, windows_->size(), options_.seed);
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

RunInputs LoaderSources::inputs() const {
  return {.dataset = windows_,
          .holder = make_holder(),
          .make_order = [self = shared_from_this()] { return self->make_order(); },
          .fingerprint = [self = shared_from_this()] { return self->fingerprint(); },
          .like = {.block_size = options_.block_size,
                   .order = std::string(order_word(options_.order)),
                   .seed = options_.seed},
          .most_ahead = options_.prefetch.value_or(0)};
}

std::uint64_t LoaderSources::fingerprint() const {
  if (!mixed_) return sources_.front().first->fingerprint();
  std::uint64_t hash = sources_.size();
  for (const auto& [tokens, weight] : sources_) {
    hash = hash_with(hash_with(hash, tokens->fingerprint()), std::bit_cast<std::uint64_t>(weight));
  }
  return hash;
}

std::optional<Loader::When> LoaderSources::when(Run& run, std::uint64_t token, std::uint64_t epoch,
                                                std::size_t source) const {
  if (options_.order == OrderKind::random) {
    throw std::invalid_argument(
        "when: random order draws windows with replacement, so a token has no single step; use "
        "order shuffle or sequential");
  }
  if (source >= sources_.size()) {
    throw std::out_of_range("when: source " + std::to_string(source) +
                            " does not exist; the loader has " + std::to_string(sources_.size()));
  }
  run.check_epoch("when", epoch);
  const std::uint64_t tokens = sources_[source].first->stream->size();
  if (token >= tokens) {
    throw std::out_of_range("when: token " + std::to_string(token) + " is outside the stream of " +
                            std::to_string(tokens) + " tokens");
  }
  // The last token of the last window is only ever a target.
  const std::uint64_t windows = positions_of(source);
  std::uint64_t window = token / options_.block_size;
  if (window == windows && token == windows * options_.block_size) --window;
  if (window >= windows) return std::nullopt;
  const Schedule& running = run.schedule();
  const auto told = [&](std::uint64_t position) -> std::optional<Loader::When> {
    const auto owner = running.owner(epoch, position);
    if (!owner) return std::nullopt;
    return Loader::When{owner->step, owner->rank, owner->row};
  };
  if (!mixed_) {
    const auto position = run.order().position_of(epoch, window);
    return position ? told(*position) : std::nullopt;
  }
  const auto base = run.base_of(epoch);
  if (!base) return std::nullopt;
  // A source with a large weight can start over within one epoch. The answer is the first position
  // that is delivered.
  const auto& mixture = static_cast<const MixedOrder&>(run.order());
  const std::uint64_t end = *base + running.size;
  for (std::uint64_t from = *base; from < end; ++from) {
    const auto found =
        mixture.position_between(static_cast<std::uint32_t>(source), window, from, end);
    if (!found) return std::nullopt;
    if (const auto when = told(*found - *base)) return when;
    from = *found;
  }
  return std::nullopt;
}

}  // namespace lowtide
