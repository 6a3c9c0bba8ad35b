#include <utility>

#include "core/step_hook.h"
#include "face/loader_data.h"
#include "face/loader_sources.h"
#include "face/run.h"
#include "face/tokens_impl.h"

namespace lowtide {
namespace {

Weighted<std::shared_ptr<Tokens::Impl>> weighted(
    std::span<const std::pair<Tokens, double>> sources) {
  Weighted<std::shared_ptr<Tokens::Impl>> all;
  for (const auto& [tokens, weight] : sources) all.emplace_back(Tokens::Impl::of(tokens), weight);
  return all;
}

}  // namespace

Loader::Loader(std::shared_ptr<const LoaderSources> sources)
    : sources_(std::move(sources)),
      run_(std::make_unique<Run>(sources_->inputs(), sources_->schedule())) {}
Loader::Loader(LoaderData data, const LoaderOptions& options)
    : Loader(std::make_shared<const LoaderSources>(std::move(data), options)) {}
Loader::Loader(const Tokens& tokens, const LoaderOptions& options)
    : Loader(windows_data({{Tokens::Impl::of(tokens), 1.0}}, false, options), options) {}
Loader::Loader(const LoaderColumns& columns, const LoaderOptions& options)
    : Loader(columns_data({{columns, 1.0}}, false, options), options) {}
Loader::Loader(std::span<const std::pair<Tokens, double>> sources, const LoaderOptions& options)
    : Loader(windows_data(weighted(sources), true, options), options) {}
Loader::Loader(std::span<const std::pair<LoaderColumns, double>> sources,
               const LoaderOptions& options)
    : Loader(columns_data({sources.begin(), sources.end()}, true, options), options) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

Batch Loader::next() {
  Batch batch = run_->next();
  if (batch) report_step(batch.epoch(), batch.step());
  return batch;
}

std::optional<Batch> Loader::next_for(std::chrono::milliseconds timeout) {
  std::optional<Batch> batch = run_->next_for(timeout);
  if (batch && *batch) report_step(batch->epoch(), batch->step());
  return batch;
}

Batch Loader::next_in(std::uint64_t epoch) {
  return this->epoch() == epoch ? next() : Batch();
}
void Loader::cancel() noexcept {
  run_->cancel();
}
std::uint64_t Loader::steps() const {
  return run_->schedule().steps_in_epoch();
}
std::uint64_t Loader::steps_left() const {
  return run_->ended() ? 0 : run_->now().left;
}
std::uint64_t Loader::epoch() const {
  return run_->now().epoch;
}
std::uint64_t Loader::step() const {
  return run_->now().step;
}
void Loader::seek(std::uint64_t step, std::optional<std::uint64_t> epoch) {
  run_->seek(step, epoch.value_or(run_->now().epoch));
}
void Loader::skip(std::uint64_t first, std::uint64_t last, std::optional<std::uint64_t> epoch) {
  run_->skip(first, last, epoch.value_or(run_->now().epoch));
}
std::optional<Loader::When> Loader::when(std::uint64_t row, std::uint64_t epoch,
                                         std::size_t source) const {
  return sources_->when(*run_, row, epoch, source);
}
State Loader::state() const {
  return run_->state();
}
void Loader::restore(const State& state) {
  run_->restore(state);
}
Stats Loader::stats() const {
  return run_->store().stats();
}

}  // namespace lowtide
