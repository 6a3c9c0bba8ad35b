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

void check_options(const LoaderOptions& options, bool mixture) {
  if (options.prefetch == 0) throw std::invalid_argument("prefetch must be at least 1, not 0");
  if (!options.drop_last && options.world_size > 1) {
    throw std::invalid_argument("drop_last must be true with a world_size of " +
                                std::to_string(options.world_size) +
                                ": a short last step would not be the same for all ranks");
  }
  if (mixture && (options.rows || options.weights)) {
    throw std::invalid_argument(std::string(options.rows ? "rows" : "weights") +
                                ": a mixture takes no selection of samples, only one weight per "
                                "source; leave it out");
  }
  if (options.weights && options.order == OrderKind::sequential) {
    throw std::invalid_argument(
        "order: with weights, samples are drawn with replacement, so order must be \"random\" or "
        "left out, not "
        "\"sequential\"");
  }
}

}  // namespace

// A loader without a budget of its own reads through its only source, or shares the budget of its
// first column. A mixture has files and a budget of its own.
std::shared_ptr<StoreHolder> join_holders(const StoreHolder::Holders& holders, bool share,
                                          std::uint64_t memory_bytes) {
  const std::shared_ptr<StoreHolder>& first = holders.front();
  share = share && memory_bytes == 0;
  if (share && holders.size() == 1) return first;
  const auto join = [&] {
    ReadOptions options = first->options;
    const auto shards = std::make_shared<Shards>();
    for (const std::shared_ptr<StoreHolder>& holder : holders) {
      const ReadOptions& theirs = holder->options;
      for (std::size_t i = 0; i < holder->shards->size(); ++i) shards->add((*holder->shards)[i]);
      if (!share) options.memory_bytes = std::max(options.memory_bytes, theirs.memory_bytes);
      if (theirs.engine != options.engine) options.engine = EngineKind::automatic;
      if (theirs.cache != options.cache) options.cache = CacheMode::automatic;
    }
    if (memory_bytes != 0) options.memory_bytes = memory_bytes;
    Budget::Entry held{"", shards->held_bytes()};
    return std::make_shared<StoreHolder>("the loader", shards, options,
                                         Budget::Entry{"one sample", 8}, std::move(held),
                                         share ? first : nullptr);
  };
  return share ? first->joined(holders, join) : join();
}

LoaderSources::LoaderSources(LoaderData data, const LoaderOptions& options)
    : data_(std::move(data)), options_(options) {
  check_options(options_, data_.mixture);
  std::vector<double> weights;
  for (const LoaderSource& source : data_.sources) weights.push_back(source.weight);
  (void)Mixture(weights);  // checks the weight of a single source too, although it has no effect
  select();
}

// Checks `rows` and `weights`, and makes what draws need.
void LoaderSources::select() {
  if (options_.rows) rows_.emplace(*options_.rows, data_.sources[0].positions);
  if (!options_.weights) return;
  const std::uint64_t count = options_.weights->size();
  if (count != positions()) {
    throw std::invalid_argument(
        "weights: there are " + std::to_string(count) + ", but there must be one for each of the " +
        std::to_string(positions()) + (rows_ ? " selected samples" : " samples"));
  }
  // Whoever asks for more than fits hears of it before the table is made.
  (void)data_.holder->store_of_run()->budget().claim(AliasTable::bytes_for(count), "weights");
  weights_ = std::make_shared<const AliasTable>(*options_.weights);
}

std::uint64_t LoaderSources::positions() const {
  if (rows_) return rows_->size();
  std::uint64_t all = 0;
  for (const LoaderSource& source : data_.sources) all += source.positions;
  return all;
}

Schedule LoaderSources::schedule() const {
  Schedule schedule{.size = positions(),
                    .batch_size = options_.batch_size,
                    .rank = options_.rank,
                    .world_size = options_.world_size,
                    .drop_last = options_.drop_last,
                    .epochs = options_.epochs.value_or(Schedule::kForever),
                    .continuous = data_.mixture};
  check_shares(schedule);
  const std::uint64_t step = schedule.positions_per_step();
  const bool enough = schedule.size >= step || !options_.drop_last;
  if (enough && schedule.size > 0) return schedule;
  // Windows that start anywhere are many more than those that an epoch counts.
  if (data_.block_size > 0 && options_.order == OrderKind::random) {
    schedule.size = step;
    return schedule;
  }
  const bool windows = data_.block_size > 0;
  throw std::invalid_argument(
      "batch_size: one step of " + std::to_string(options_.world_size) +
      (options_.world_size == 1 ? " rank needs " : " ranks needs ") + std::to_string(step) +
      (windows ? " windows of block_size " + std::to_string(data_.block_size) : " rows") +
      ", but there are " + std::to_string(schedule.size) + "; use a smaller batch_size" +
      (windows ? " or block_size" : ""));
}

std::unique_ptr<Order> LoaderSources::make_order() const {
  if (data_.mixture) return make_mixed_order();
  const std::uint64_t size = schedule().size;
  std::unique_ptr<Order> order;
  if (weights_) {
    order = make_weighted(weights_, size, options_.seed);
  } else {
    const std::uint64_t limit = rows_ ? rows_->size() : data_.sources[0].samples;
    order = make_source_order(options_.order, size, limit, options_.seed);
  }
  return rows_ ? make_subset(*rows_, std::move(order)) : std::move(order);
}

std::unique_ptr<Order> LoaderSources::make_mixed_order() const {
  std::vector<double> weights;
  std::vector<std::unique_ptr<Order>> orders;
  std::vector<std::uint64_t> limits;
  for (const LoaderSource& source : data_.sources) {
    // Sources of the same size must not be shuffled the same way.
    const std::size_t i = orders.size();
    const std::uint64_t seed = i == 0 ? options_.seed : hash_with(options_.seed, i);
    weights.push_back(source.weight);
    limits.push_back(source.samples);
    orders.push_back(make_source_order(options_.order, source.positions, source.samples, seed));
  }
  return std::make_unique<MixedOrder>(Mixture(weights), std::move(orders), limits);
}

std::string why_no_pinning() {
  std::string reason;
  (void)find_cuda(true, &reason);
  return reason;
}

RunInputs LoaderSources::inputs() const {
  std::string reason;
  const std::shared_ptr<Accelerator> device =
      options_.pin_memory ? find_cuda(options_.fenced, &reason) : nullptr;
  if (options_.pin_memory && !device) {
    throw std::invalid_argument("pin_memory: " + reason + "; leave pin_memory out");
  }
  std::vector<Budget::Entry> holds = data_.holds;
  if (weights_) holds.push_back({"weights", AliasTable::bytes_for(weights_->size())});
  if (rows_ && options_.claim_rows) holds.push_back({"rows", rows_->list_bytes()});
  const OrderKind order = weights_ ? OrderKind::random : options_.order;
  return {.dataset = data_.dataset,
          .holder = data_.holder,
          .make_order = [self = shared_from_this()] { return self->make_order(); },
          .fingerprint = [self = shared_from_this()] { return self->fingerprint(); },
          .like = {.block_size = data_.block_size,
                   .order = std::string(order_word(order)),
                   .seed = options_.seed},
          .most_ahead = options_.prefetch.value_or(0),
          .holds = std::move(holds),
          .prepare = data_.prepare,
          .device = device};
}

std::uint64_t LoaderSources::fingerprint() const {
  if (data_.mixture) {
    std::uint64_t hash = data_.sources.size();
    for (const LoaderSource& source : data_.sources) {
      hash = hash_with(hash_with(hash, source.fingerprint()),
                       std::bit_cast<std::uint64_t>(source.weight));
    }
    return hash;
  }
  std::uint64_t hash = data_.sources[0].fingerprint();
  if (rows_) hash = rows_->hash(hash);
  if (weights_) hash = hash_with(hash, std::as_bytes(weights_->columns()));
  return hash;
}

std::optional<Loader::When> LoaderSources::when(Run& run, std::uint64_t row, std::uint64_t epoch,
                                                std::size_t source) const {
  if (options_.order == OrderKind::random || weights_) {
    throw std::invalid_argument(
        "when: samples are drawn with replacement, so none has a single step; use order "
        "\"shuffle\" or \"sequential\" without weights");
  }
  if (source >= data_.sources.size()) {
    throw std::out_of_range("when: source " + std::to_string(source) +
                            " does not exist; the loader has " +
                            std::to_string(data_.sources.size()));
  }
  run.check_epoch("when", epoch);
  const std::optional<std::uint64_t> sample = data_.sample_of(source, row);
  if (!sample) return std::nullopt;
  const Schedule& running = run.schedule();
  const auto told = [&](std::uint64_t position) -> std::optional<Loader::When> {
    const auto owner = running.owner(epoch, position);
    if (!owner) return std::nullopt;
    return Loader::When{owner->step, owner->rank, owner->row};
  };
  if (!data_.mixture) {
    const auto position = run.order().position_of(epoch, *sample);
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
        mixture.position_between(static_cast<std::uint32_t>(source), *sample, from, end);
    if (!found) return std::nullopt;
    if (const auto when = told(*found - *base)) return when;
    from = *found;
  }
  return std::nullopt;
}

}  // namespace lowtide
