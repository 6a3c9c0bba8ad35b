// loader_impl.h - the implementation of Loader. loader.cc makes it; loader_place.cc knows how far
// its run has come and moves it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dataset/windows.h"
#include "face/run.h"
#include "face/tokens_impl.h"
#include "loader/schedule.h"
#include "lowtide/tokens.h"
#include "order/order.h"

namespace lowtide {

class Loader::Impl {
 public:
  using Sources = std::vector<std::pair<std::shared_ptr<Tokens::Impl>, double>>;

  // A mixture may have one source; it still leaves out nothing between two epochs.
  Impl(Sources sources, bool mixture, const LoaderOptions& options);

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
  void make_windows();
  void make_schedule();
  [[nodiscard]] std::shared_ptr<StoreHolder> make_holder() const;
  [[nodiscard]] RunInputs inputs() const;
  [[nodiscard]] std::unique_ptr<Order> make_order() const;
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] LoaderState place() const;  // the state without the fingerprint, which needs reads
  void check(const LoaderState& state) const;
  void go_to(const LoaderState& place);
  [[nodiscard]] std::uint64_t positions_of(std::size_t source) const;
  void check_epoch(const char* what, std::uint64_t epoch) const;
  [[nodiscard]] std::optional<std::uint64_t> base_of(std::uint64_t epoch) const;

  const Sources sources_;
  const bool mixed_;
  const LoaderOptions options_;
  std::shared_ptr<StoreHolder> holder_;
  std::shared_ptr<const Windows> windows_;
  Schedule schedule_;  // from the start of the first epoch, without skips
  std::unique_ptr<Run> run_;
};

}  // namespace lowtide
