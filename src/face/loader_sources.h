// loader_sources.h - the samples of a Loader in their order: whatever it reads, as the inputs of a
// Run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "face/loader_data.h"
#include "face/run.h"
#include "loader/schedule.h"
#include "lowtide/loader.h"
#include "order/order.h"
#include "order/subset.h"
#include "order/weighted.h"

namespace lowtide {

// Immutable. Any thread.
class LoaderSources : public std::enable_shared_from_this<LoaderSources> {
 public:
  // Throws std::invalid_argument for a wrong option or weight, and std::out_of_range for a row that
  // does not exist.
  LoaderSources(LoaderData data, const LoaderOptions& options);

  // For a Run, from the start of the first epoch. Throws std::invalid_argument for fewer samples
  // than one step of all ranks needs.
  [[nodiscard]] RunInputs inputs() const;
  [[nodiscard]] Schedule schedule() const;

  // As Loader::when, in a run over these sources.
  [[nodiscard]] std::optional<Loader::When> when(Run& run, std::uint64_t row, std::uint64_t epoch,
                                                 std::size_t source) const;

 private:
  void select();
  [[nodiscard]] std::unique_ptr<Order> make_order() const;
  [[nodiscard]] std::unique_ptr<Order> make_mixed_order() const;
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] std::uint64_t positions() const;

  const LoaderData data_;
  const LoaderOptions options_;
  std::optional<Subset> rows_;
  std::shared_ptr<const AliasTable> weights_;
};

}  // namespace lowtide
