// loader_sources.h - what a Loader reads from: one stream of tokens or a weighted mixture of
// several, as one data set in one order.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dataset/windows.h"
#include "face/run.h"
#include "face/tokens_impl.h"
#include "loader/schedule.h"
#include "lowtide/tokens.h"
#include "order/order.h"

namespace lowtide {

// Immutable. Any thread.
class LoaderSources : public std::enable_shared_from_this<LoaderSources> {
 public:
  using Weighted = std::vector<std::pair<std::shared_ptr<Tokens::Impl>, double>>;

  // A mixture may have one source; it still leaves out nothing between two epochs. Throws
  // std::invalid_argument for a wrong option or weight and for a stream that is closed.
  LoaderSources(Weighted sources, bool mixture, const LoaderOptions& options);

  // For a Run, from the start of the first epoch. Throws std::invalid_argument for fewer windows
  // than one step of all ranks needs.
  [[nodiscard]] RunInputs inputs() const;
  [[nodiscard]] Schedule schedule() const;

  // As Loader::when, in a run over these sources.
  [[nodiscard]] std::optional<Loader::When> when(Run& run, std::uint64_t token, std::uint64_t epoch,
                                                 std::size_t source) const;

 private:
  [[nodiscard]] std::shared_ptr<StoreHolder> make_holder() const;
  [[nodiscard]] std::shared_ptr<const Windows> make_windows() const;
  [[nodiscard]] std::unique_ptr<Order> make_order() const;
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] std::uint64_t positions_of(std::size_t source) const;

  const Weighted sources_;
  const bool mixed_;
  const LoaderOptions options_;
  std::shared_ptr<const Windows> windows_;
};

}  // namespace lowtide
