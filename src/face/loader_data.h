// loader_data.h - what a Loader reads, whatever its kind: one data set over one or several sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "dataset/dataset.h"
#include "face/store.h"
#include "lowtide/loader.h"

namespace lowtide {

struct LoaderSource {
  std::uint64_t positions = 0;                 // in an epoch
  std::uint64_t samples = 0;                   // in the data set
  std::function<std::uint64_t()> fingerprint;  // may read
  double weight = 1;                           // in a mixture
};

struct LoaderData {
  std::shared_ptr<const Dataset> dataset = nullptr;
  std::shared_ptr<StoreHolder> holder = nullptr;
  std::vector<LoaderSource> sources = {};
  // A mixture may have one source; it still leaves out nothing between two epochs.
  bool mixture = false;
  std::uint64_t block_size = 0;  // 0: samples are not windows
  std::vector<Budget::Entry> holds = {};
  std::function<void(Store&)> prepare = nullptr;  // as in RunInputs
  // The sample of a source that has a row or token; nullopt if none has it. Throws
  // std::out_of_range if it does not exist.
  std::function<std::optional<std::uint64_t>(std::size_t source, std::uint64_t row)> sample_of =
      nullptr;
};

template <class Source>
using Weighted = std::vector<std::pair<Source, double>>;

// Both throw std::invalid_argument for a wrong option and for a source that is closed.
[[nodiscard]] LoaderData windows_data(const Weighted<std::shared_ptr<Tokens::Impl>>& sources,
                                      bool mixture, const LoaderOptions& options);
// The second one also for columns that do not fit together, and FormatError for wrong offsets.
[[nodiscard]] LoaderData columns_data(const Weighted<LoaderColumns>& sources, bool mixture,
                                      const LoaderOptions& options);

// The files of several holders as one list, with one engine. The budget is that of the first holder
// if `share`, else one of its own, as large as the largest of theirs or `memory_bytes`.
[[nodiscard]] std::shared_ptr<StoreHolder> join_holders(const StoreHolder::Holders& holders,
                                                        bool share, std::uint64_t memory_bytes);

}  // namespace lowtide
