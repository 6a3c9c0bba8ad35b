#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hash.h"
#include "face/loader_impl.h"
#include "order/mixed.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostSkips = 16;  // keeps a state under 1 KB
// The most windows of a mixture before a place that a caller may go to. It leaves as many again, so
// that a run never reaches the last position of a mixture.
constexpr std::uint64_t kMostBase = Mixture::kMostPositions / 2;

}  // namespace

void Loader::Impl::seek(std::uint64_t step, std::uint64_t epoch) {
  const std::uint64_t steps = schedule_.steps_in_epoch();
  if (step > steps || (options_.epochs && epoch >= *options_.epochs + (step == 0 ? 1 : 0))) {
    throw std::out_of_range(
        "seek: step " + std::to_string(step) + " of epoch " + std::to_string(epoch) +
        " is beyond the " + std::to_string(steps) + " steps of an epoch" +
        (options_.epochs ? " and the " + std::to_string(*options_.epochs) + " epochs of this loader"
                         : ""));
  }
  check_epoch("seek", epoch);
  LoaderState place = this->place();
  place.base = base_of(epoch).value_or(0);
  place.epoch = epoch;
  place.step = step;
  place.position = std::min(step * schedule_.positions_per_step(), schedule_.size);
  go_to(place);
}

void Loader::Impl::check_epoch(const char* what, std::uint64_t epoch) const {
  const std::uint64_t last = kMostBase / schedule_.size;
  if (!mixed_ || epoch <= last) return;
  throw std::out_of_range(std::string(what) + ": a mixture of this size has no epoch " +
                          std::to_string(epoch) + "; its last epoch is " + std::to_string(last));
}

void Loader::Impl::skip(std::uint64_t first, std::uint64_t last, std::uint64_t epoch) {
  const Schedule::Turn next = now();
  if (epoch < next.epoch || (epoch == next.epoch && first < next.step)) {
    throw std::invalid_argument("skip: step " + std::to_string(first) + " of epoch " +
                                std::to_string(epoch) + " has passed; the next is step " +
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
    throw std::invalid_argument("skip: " + std::to_string(first) + " to " + std::to_string(last) +
                                " is not a range within the " + std::to_string(end) +
                                " steps of the epoch");
  }
  // Where the step with this number starts. It takes a search, because no formula holds for an
  // epoch that was entered under other sizes or that has skips already.
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
  LoaderState place = this->place();
  place.skipped.push_back({epoch, from, to});
  go_to(place);
}

// Positions of a mixture before an epoch; nullopt if the epoch would start before position 0.
std::optional<std::uint64_t> Loader::Impl::base_of(std::uint64_t epoch) const {
  const Schedule& running = run_->schedule();
  if (!mixed_) return 0;
  if (epoch >= running.epoch) return running.in_epoch(epoch, 0).base;
  // Computed as if the current sizes had been in force.
  const std::uint64_t each = schedule_.drop_last
                                 ? schedule_.steps_in_epoch() * schedule_.positions_per_step()
                                 : schedule_.size;
  if (running.epoch - epoch > running.base / each) return std::nullopt;
  return running.base - (running.epoch - epoch) * each;
}

std::optional<Loader::When> Loader::Impl::when(std::uint64_t token, std::uint64_t epoch,
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
  check_epoch("when", epoch);
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
  const Schedule& running = run_->schedule();
  const auto told = [&](std::uint64_t position) -> std::optional<When> {
    const auto owner = running.owner(epoch, position);
    if (!owner) return std::nullopt;
    return When{owner->step, owner->rank, owner->row};
  };
  if (!mixed_) {
    const auto position = run_->order().position_of(epoch, window);
    return position ? told(*position) : std::nullopt;
  }
  const auto base = base_of(epoch);
  if (!base) return std::nullopt;
  // A source with a large weight can start over within one epoch. The answer is the first position
  // that is delivered.
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
  if (!mixed_) return sources_.front().first->fingerprint();
  std::uint64_t hash = sources_.size();
  for (const auto& [tokens, weight] : sources_) {
    hash = hash_with(hash_with(hash, tokens->fingerprint()), std::bit_cast<std::uint64_t>(weight));
  }
  return hash;
}

LoaderState Loader::Impl::place() const {
  const Schedule::Turn next = now();
  LoaderState place{.block_size = options_.block_size,
                    .order = options_.order,
                    .seed = options_.seed,
                    .epoch = next.epoch,
                    .position = next.position,
                    .step = next.step,
                    .base = mixed_ ? next.base : 0};
  for (const Skip& skip : run_->schedule().skips) {
    place.skipped.push_back({skip.epoch, skip.first, skip.last});
  }
  return place;
}

LoaderState Loader::Impl::state() const {
  LoaderState state = place();
  state.fingerprint = fingerprint();
  return state;
}

void Loader::Impl::restore(const LoaderState& state) {
  check(state);
  go_to(state);
}

// Throws std::invalid_argument unless the state was saved by such a loader over such data.
void Loader::Impl::check(const LoaderState& state) const {
  const auto differs = [](const char* what, const auto& saved, const auto& here) {
    throw std::invalid_argument(std::string("state: ") + what + " differs: the state has " + saved +
                                ", this loader has " + here);
  };
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  if (state.format != LoaderState::kFormat) {
    differs("format", text(state.format), text(LoaderState::kFormat));
  }
  if (state.block_size != options_.block_size) {
    differs("block_size", text(state.block_size), text(options_.block_size));
  }
  if (state.order != options_.order) {
    differs("order", std::string(order_word(state.order)),
            std::string(order_word(options_.order)));
  }
  if (state.seed != options_.seed) differs("seed", text(state.seed), text(options_.seed));
  if (state.fingerprint != fingerprint()) {
    throw std::invalid_argument(
        "state: the data differs: the state was saved with different files, contents or weights");
  }
}

// Throws std::invalid_argument for a state that does not name a place in this run.
void Loader::Impl::go_to(const LoaderState& state) {
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  // A random epoch is stretched to at least one step, so it may have been longer under other sizes.
  const bool random = options_.order == OrderKind::random;
  if (state.position > schedule_.size && !random) {
    throw std::invalid_argument("state: position " + text(state.position) + " is beyond the " +
                                text(schedule_.size) + " positions of an epoch");
  }
  if (mixed_ && state.base > kMostBase) {
    throw std::invalid_argument("state: " + text(state.base) +
                                " windows before this epoch exceed the " + text(kMostBase) +
                                " that a mixture can have");
  }
  Schedule schedule = schedule_;
  schedule.epoch = state.epoch;
  schedule.position = std::min(state.position, schedule_.size);
  schedule.step = state.step;
  schedule.base = mixed_ ? state.base : 0;
  if (options_.epochs) schedule.epochs = *options_.epochs - std::min(state.epoch, *options_.epochs);
  std::vector<Skip> skips;
  for (const LoaderState::Skipped& skip : state.skipped) {
    if (skip.first >= skip.last || (skip.last > schedule_.size && !random)) {
      throw std::invalid_argument("state: the skipped range " + text(skip.first) + " to " +
                                  text(skip.last) + " is not within an epoch");
    }
    const std::uint64_t last = std::min(skip.last, schedule_.size);
    if (skip.first < last) skips.push_back({skip.epoch, skip.first, last});
  }
  schedule.skips = Skips(std::move(skips));
  schedule.skips.forget(kMostSkips, state.epoch);
  if (schedule.skips.size() > kMostSkips) {
    throw std::invalid_argument("skip: more than " + text(kMostSkips) +
                                " ranges in the current and later epochs; join some, because "
                                "adjacent ranges count as one");
  }
  run_->restart(std::move(schedule), 0);
}

}  // namespace lowtide
