#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "core/hash.h"
#include "face/run.h"
#include "face/tokens_impl.h"
#include "lowtide/tokens.h"
#include "order/mixed.h"
#include "order/random.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostSkips = 8;  // at a time: a state stays small

using Sources = std::vector<std::pair<std::shared_ptr<Tokens::Impl>, double>>;

std::unique_ptr<Order> make_source_order(WindowOrder kind, std::uint64_t positions,
                                         std::uint64_t limit, std::uint64_t seed) {
  switch (kind) {
    case WindowOrder::shuffle:
      return make_shuffle(limit, seed);
    case WindowOrder::random:
      return make_random(positions, limit, seed);
    case WindowOrder::sequential:
      break;
  }
  return make_sequential(limit);
}

// Sorts, and makes one of those that overlap or touch.
void join_skips(std::vector<Skip>* skips) {
  std::ranges::sort(*skips, {}, [](const Skip& skip) { return std::pair(skip.epoch, skip.first); });
  std::vector<Skip> joined;
  for (const Skip& skip : *skips) {
    Skip* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->epoch == skip.epoch && skip.first <= last->last) {
      last->last = std::max(last->last, skip.last);
    } else {
      joined.push_back(skip);
    }
  }
  *skips = std::move(joined);
}

void check_options(const LoaderOptions& options) {
  if (options.batch_size == 0) throw std::invalid_argument("batch_size: must be at least 1");
  if (options.prefetch == 0) throw std::invalid_argument("prefetch: must be at least 1");
  if (options.world_size == 0) throw std::invalid_argument("world_size: must be at least 1");
  if (options.rank >= options.world_size) {
    throw std::invalid_argument("rank: " + std::to_string(options.rank) +
                                " is not below world_size " + std::to_string(options.world_size));
  }
  if (!options.drop_last && options.world_size > 1) {
    throw std::invalid_argument(
        "drop_last: False needs world_size 1; with more ranks a short step would not be the same "
        "for all");
  }
}

}  // namespace

class Loader::Impl {
 public:
  Impl(Sources sources, const LoaderOptions& options);

  std::optional<TokenBatch> next(std::chrono::milliseconds timeout, bool* timed_out) {
    std::optional<Lease> lease = run_->next(timeout, timed_out);
    if (!lease) return std::nullopt;
    return TokenBatch(std::make_unique<TokenBatch::Impl>(std::move(*lease), windows_));
  }

  [[nodiscard]] Run& run() const { return *run_; }
  [[nodiscard]] Schedule::Turn now() const { return run_->schedule().at(run_->turn()); }
  [[nodiscard]] bool ended() const { return run_->turn() == run_->turns(); }
  void seek(std::uint64_t step, std::uint64_t epoch);
  void skip(std::uint64_t first, std::uint64_t last, std::uint64_t epoch);
  [[nodiscard]] std::optional<When> when(std::uint64_t token, std::uint64_t epoch,
                                         std::size_t source) const;
  [[nodiscard]] LoaderState state() const;
  void restore(const LoaderState& state);

 private:
  [[nodiscard]] bool mixed() const { return sources_.size() > 1; }
  void make_windows();
  void make_schedule();
  [[nodiscard]] std::shared_ptr<StoreHolder> make_holder() const;
  [[nodiscard]] RunInputs inputs() const;
  [[nodiscard]] std::unique_ptr<Order> make_order() const;
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] std::uint64_t positions_of(std::size_t source) const;
  [[nodiscard]] std::optional<std::uint64_t> base_of(std::uint64_t epoch) const;

  const Sources sources_;
  const LoaderOptions options_;
  std::shared_ptr<StoreHolder> holder_;
  std::shared_ptr<const Windows> windows_;
  Schedule schedule_;  // from the start of the first epoch, nothing skipped
  std::unique_ptr<Run> run_;
};

Loader::Impl::Impl(Sources sources, const LoaderOptions& options)
    : sources_(std::move(sources)), options_(options) {
  if (sources_.empty()) throw std::invalid_argument("the list of sources is empty");
  check_options(options_);
  std::vector<double> weights;
  for (const auto& [tokens, weight] : sources_) {
    if (tokens->holder->closed()) (void)tokens->holder->store();  // says so
    check_block(options_.block_size, tokens->stream->size());
    weights.push_back(weight);
  }
  (void)Mixture(weights);  // also of a single source, whose weight is of no use
  holder_ = make_holder();
  make_windows();
  make_schedule();
  run_ = std::make_unique<Run>(inputs(), schedule_);
}

// One stream without a budget of its own reads through its tokens; else the loader has files and
// budget for itself.
std::shared_ptr<StoreHolder> Loader::Impl::make_holder() const {
  const StoreHolder& first = *sources_.front().first->holder;
  if (!mixed() && options_.memory_bytes == 0) {
    return sources_.front().first->holder;
  }
  StoreOptions options = first.options;
  std::vector<Shard> shards;
  for (const auto& [tokens, weight] : sources_) {
    const StoreHolder& holder = *tokens->holder;
    shards.insert(shards.end(), holder.shards.begin(), holder.shards.end());
    options.memory_bytes = std::max(options.memory_bytes, holder.options.memory_bytes);
    if (holder.options.engine != options.engine) options.engine = EngineKind::automatic;
    if (holder.options.cache != options.cache) options.cache = CacheMode::automatic;
  }
  if (options_.memory_bytes != 0) options.memory_bytes = options_.memory_bytes;
  return std::make_shared<StoreHolder>("the loader", std::move(shards), options,
                                       Budget::Entry{"one token", 8});
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
        throw std::invalid_argument("documents=\"separate\": " + tokens->stream->format() +
                                    " files do not tell where documents are; give the token "
                                    "between them as eot= when opening");
      }
    }
    first_shard += static_cast<std::uint32_t>(tokens->stream->paths().size());
    sources.push_back(std::move(source));
  }
  windows_ = std::make_shared<const Windows>(
      std::move(sources), WindowsOptions{.block_size = options_.block_size,
                                         .to = parse_token_type(options_.dtype),
                                         .anywhere = options_.order == WindowOrder::random,
                                         .separate = options_.separate_documents});
  if (windows_->reads_per_part() > Engine::kMaxReads) {
    throw std::invalid_argument("block_size: a window of " + std::to_string(options_.block_size) +
                                " + 1 tokens lies in up to " +
                                std::to_string(windows_->reads_per_part()) + " files; " +
                                std::to_string(Engine::kMaxReads) + " are read together at most");
  }
}

// Positions that a source has in an epoch: as many as it has windows that do not overlap.
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
               .continuous = mixed()};
  const std::uint64_t step = schedule_.positions_per_step();
  if (positions >= step || !options_.drop_last) return;
  if (options_.order != WindowOrder::random) {
    throw std::invalid_argument("batch_size: one step of " + std::to_string(options_.world_size) +
                                " ranks needs " + std::to_string(step) + " windows of block_size " +
                                std::to_string(options_.block_size) + ", but there are " +
                                std::to_string(positions));
  }
  schedule_.size = step;
}

std::unique_ptr<Order> Loader::Impl::make_order() const {
  if (!mixed()) {
    return make_source_order(options_.order, schedule_.size, windows_->size(), options_.seed);
  }
  std::vector<double> weights;
  std::vector<std::unique_ptr<Order>> orders;
  std::vector<std::uint64_t> limits;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    weights.push_back(sources_[i].second);
    limits.push_back(windows_->size_of(i));
    // Sources of the same size must not be shuffled alike.
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

void Loader::Impl::seek(std::uint64_t step, std::uint64_t epoch) {
  const std::uint64_t steps = schedule_.steps_in_epoch();
  if (step > steps || (options_.epochs && epoch >= *options_.epochs + (step == 0 ? 1 : 0))) {
    throw std::out_of_range(
        "seek: step " + std::to_string(step) + " of epoch " + std::to_string(epoch) +
        " is beyond the " + std::to_string(steps) + " steps of an epoch" +
        (options_.epochs ? " and the " + std::to_string(*options_.epochs) + " epochs of this loader"
                         : ""));
  }
  LoaderState state = this->state();
  state.base = base_of(epoch).value_or(0);
  state.epoch = epoch;
  state.step = step;
  state.position = std::min(step * schedule_.positions_per_step(), schedule_.size);
  restore(state);
}

void Loader::Impl::skip(std::uint64_t first, std::uint64_t last, std::uint64_t epoch) {
  const Schedule::Turn next = now();
  if (epoch < next.epoch || (epoch == next.epoch && first < next.step)) {
    throw std::invalid_argument("skip: step " + std::to_string(first) + " of epoch " +
                                std::to_string(epoch) + " is behind; the next is step " +
                                std::to_string(next.step) + " of epoch " +
                                std::to_string(next.epoch));
  }
  if (options_.epochs && epoch >= *options_.epochs) {
    throw std::invalid_argument("skip: epoch " + std::to_string(epoch) + " is beyond the " +
                                std::to_string(*options_.epochs) + " epochs of this loader");
  }
  const Schedule& running = run_->schedule();
  const std::uint64_t steps = running.in_epoch(epoch, 0).left;
  const std::uint64_t end = running.in_epoch(epoch, steps).step;
  if (first >= last || last > end) {
    throw std::invalid_argument("skip: steps " + std::to_string(first) + " to " +
                                std::to_string(last) + " are not a range within the " +
                                std::to_string(end) + " of the epoch");
  }
  // Where the step of this name starts: by search, because an epoch that was entered under other
  // sizes, or has skips already, has no plain rule for it.
  const auto start_of = [&](std::uint64_t step) {
    std::uint64_t low = 0, high = steps;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (running.in_epoch(epoch, middle).step < step) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return running.in_epoch(epoch, low).position;
  };
  const std::uint64_t from = start_of(first), to = start_of(last);
  if (from == to) return;  // skipped already
  LoaderState state = this->state();
  state.skipped.push_back({epoch, from, to});
  restore(state);
}

// Positions of a mixture before an epoch; nullopt where that would be before the first.
std::optional<std::uint64_t> Loader::Impl::base_of(std::uint64_t epoch) const {
  const Schedule& running = run_->schedule();
  if (!mixed()) return 0;
  if (epoch >= running.epoch) return running.in_epoch(epoch, 0).base;
  // As if the present sizes had held.
  const std::uint64_t each = schedule_.drop_last
                                 ? schedule_.steps_in_epoch() * schedule_.positions_per_step()
                                 : schedule_.size;
  if (running.epoch - epoch > running.base / each) return std::nullopt;
  return running.base - (running.epoch - epoch) * each;
}

std::optional<Loader::When> Loader::Impl::when(std::uint64_t token, std::uint64_t epoch,
                                               std::size_t source) const {
  if (options_.order == WindowOrder::random) {
    throw std::invalid_argument(
        "when: in random order windows are drawn with replacement, so no one step has a token");
  }
  if (source >= sources_.size()) throw std::out_of_range("when: there is no such source");
  const std::uint64_t tokens = sources_[source].first->stream->size();
  if (token >= tokens) {
    throw std::out_of_range("when: token " + std::to_string(token) + " is outside the " +
                            std::to_string(tokens) + " of the stream");
  }
  // The last token of the last window is only ever a target.
  const std::uint64_t windows = positions_of(source);
  std::uint64_t window = token / options_.block_size;
  if (window == windows && token == windows * options_.block_size) --window;
  if (window >= windows) return std::nullopt;
  const Schedule& running = run_->schedule();
  const auto told = [&](std::uint64_t position) -> std::optional<When> {
    const auto owner = running.owner(epoch, position);
    if (!owner) return std::nullopt;
    return When{owner->step, owner->rank, owner->row};
  };
  if (!mixed()) {
    const auto position = run_->order().position_of(epoch, window);
    return position ? told(*position) : std::nullopt;
  }
  const auto base = base_of(epoch);
  if (!base) return std::nullopt;
  // A source that is drawn from often comes round in one epoch: the first that is trained on.
  const auto& mixture = static_cast<const MixedOrder&>(run_->order());
  const std::uint64_t end = *base + schedule_.size;
  for (std::uint64_t from = *base; from < end; ++from) {
    const auto found =
        mixture.position_between(static_cast<std::uint32_t>(source), window, from, end);
    if (!found) return std::nullopt;
    if (const auto when = told(*found - *base)) return when;
    from = *found;
  }
  return std::nullopt;
}

std::uint64_t Loader::Impl::fingerprint() const {
  if (!mixed()) return sources_.front().first->fingerprint();
  std::uint64_t hash = sources_.size();
  for (const auto& [tokens, weight] : sources_) {
    hash = hash_with(hash_with(hash, tokens->fingerprint()), std::bit_cast<std::uint64_t>(weight));
  }
  return hash;
}

LoaderState Loader::Impl::state() const {
  const Schedule::Turn next = now();
  LoaderState state{.fingerprint = fingerprint(),
                    .block_size = options_.block_size,
                    .order = options_.order,
                    .seed = options_.seed,
                    .epoch = next.epoch,
                    .position = next.position,
                    .step = next.step,
                    .base = mixed() ? next.base : 0};
  for (const Skip& skip : run_->schedule().skips) {
    const bool behind =
        skip.epoch < next.epoch || (skip.epoch == next.epoch && skip.last <= next.position);
    if (!behind) state.skipped.push_back({skip.epoch, skip.first, skip.last});
  }
  return state;
}

void Loader::Impl::restore(const LoaderState& state) {
  const auto differs = [](const char* what, const auto& saved, const auto& here) {
    throw std::invalid_argument(std::string("state: ") + what + " differs: the state has " + saved +
                                ", this loader " + here);
  };
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  if (state.format != LoaderState::kFormat) {
    differs("format", text(state.format), text(LoaderState::kFormat));
  }
  if (state.block_size != options_.block_size) {
    differs("block_size", text(state.block_size), text(options_.block_size));
  }
  if (state.order != options_.order) {
    differs("order", std::string(window_order_word(state.order)),
            std::string(window_order_word(options_.order)));
  }
  if (state.seed != options_.seed) differs("seed", text(state.seed), text(options_.seed));
  if (state.fingerprint != fingerprint()) {
    throw std::invalid_argument(
        "state: the data differs: the state was saved with other files, other contents or other "
        "weights");
  }
  // A random epoch is as long as a step needs it: under other sizes it may have been longer.
  const bool random = options_.order == WindowOrder::random;
  if (state.position > schedule_.size && !random) {
    throw std::invalid_argument("state: position " + text(state.position) + " is beyond the " +
                                text(schedule_.size) + " of an epoch");
  }
  if (mixed() && state.base > Mixture::kMostPositions - schedule_.size) {
    throw std::invalid_argument("state: " + text(state.base) +
                                " windows before this epoch are more than a mixture can have");
  }
  Schedule schedule = schedule_;
  schedule.epoch = state.epoch;
  schedule.position = std::min(state.position, schedule_.size);
  schedule.step = state.step;
  schedule.base = mixed() ? state.base : 0;
  if (options_.epochs) schedule.epochs = *options_.epochs - std::min(state.epoch, *options_.epochs);
  for (const LoaderState::Skipped& skip : state.skipped) {
    if (skip.first >= skip.last || skip.last > schedule_.size) {
      throw std::invalid_argument("state: the skipped range " + text(skip.first) + " to " +
                                  text(skip.last) + " is not within an epoch");
    }
    schedule.skips.push_back({skip.epoch, skip.first, skip.last});
  }
  join_skips(&schedule.skips);
  if (schedule.skips.size() > kMostSkips) {
    throw std::invalid_argument("skip: more than " + text(kMostSkips) + " ranges ahead at a time");
  }
  run_->restart(std::move(schedule), 0);
}

namespace {

Sources sources_of(std::span<const std::pair<Tokens, double>> sources,
                   std::shared_ptr<Tokens::Impl> (*impl_of)(const Tokens&)) {
  Sources made;
  for (const auto& [tokens, weight] : sources) made.emplace_back(impl_of(tokens), weight);
  return made;
}

}  // namespace

Loader::Loader(const Tokens& tokens, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(Sources{{tokens.impl_, 1.0}}, options)) {}
Loader::Loader(std::span<const std::pair<Tokens, double>> sources, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(
          sources_of(sources, [](const Tokens& tokens) { return tokens.impl_; }), options)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

std::optional<TokenBatch> Loader::next() {
  for (;;) {
    bool timed_out = false;
    std::optional<TokenBatch> batch = impl_->next(std::chrono::hours(1), &timed_out);
    if (!timed_out) return batch;
  }
}

std::optional<TokenBatch> Loader::next_for(std::chrono::milliseconds timeout, bool* timed_out) {
  return impl_->next(timeout, timed_out);
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
