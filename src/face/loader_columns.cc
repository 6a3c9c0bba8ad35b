// What a Loader of columns reads: rows of one or several arrays that come together.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "dataset/columns.h"
#include "dataset/dense.h"
#include "engine/engine.h"
#include "face/loader_data.h"
#include "face/source_columns.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/memory.h"

namespace lowtide {
namespace {

// At most half of what is free beside a batch. A row that is held saves a read, whatever its size,
// while half of the look-ahead costs a part of what merging gains.
constexpr std::uint64_t kHeldShare = 2;
constexpr std::uint64_t kHeldRunBytes = 8 * 1024 * 1024;  // that are read together
constexpr std::uint64_t kHeldRunRows = 4096;              // likewise, if they do not touch

// Columns that are read once and then stay in memory.
struct HeldColumns {
  struct One {
    std::shared_ptr<const Rows> rows;
    Memory bytes;
  };

  void read(Store& store) {
    if (all_read) return;  // by the parent, before a fork
    std::vector<Read> reads;
    for (const One& one : columns) {
      const std::uint64_t each = one.rows->sample_bytes();
      // Rows that do not touch need a read each.
      const std::uint64_t together =
          std::clamp<std::uint64_t>(kHeldRunBytes / each, 1, one.rows->rows_for(kHeldRunRows));
      for (std::uint64_t first = 0; first < one.rows->size(); first += together) {
        reads.clear();
        one.rows->locate_run(first, std::min(together, one.rows->size() - first),
                             one.bytes.data() + first * each, reads);
        store.read(reads);
      }
    }
    all_read = true;  // only now: a fork in another thread may come at any time
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t all = 0;
    for (const One& one : columns) all += one.bytes.size();
    return all;
  }

  std::vector<One> columns;
  bool all_read = false;
};

// About what a batch of a source takes: as buffer_bytes() in loader/room.h, but for one column.
std::uint64_t batch_bytes_of(const Dataset& column, std::uint64_t batch_size) {
  const std::uint64_t rows = std::min(batch_size, column.size());
  const std::uint64_t most = column.sample_bytes();
  if (rows == 0) return 0;
  return std::min(rows * most, most + 2 * (column.data_bytes() / column.size() + 1) * rows);
}

// Holds small columns, the smallest first, as far as half of what a batch leaves free goes. If the
// engine holds all of the data, it does that anyway; but the first array may have taken the room
// for itself.
std::shared_ptr<HeldColumns> hold_columns(std::vector<SourceReader>* sources, StoreHolder& holder,
                                          std::uint64_t batch_size) {
  const std::shared_ptr<Store> store = holder.store_of_run();
  std::vector<SourceColumn*> small;
  std::uint64_t all_bytes = 0, batch_bytes = 0;
  for (SourceReader& source : *sources) {
    std::uint64_t here_bytes = 0;
    for (SourceColumn& column : source.columns) {
      here_bytes += batch_bytes_of(*column.part.data, batch_size);
      all_bytes += column.part.data->data_bytes();
      if (column.rows && !(column.rows->fortran_order() && column.rows->parts() > 1) &&
          column.rows->data_bytes() > 0) {
        small.push_back(&column);
      }
    }
    batch_bytes = std::max(batch_bytes, here_bytes);
  }
  const auto held = std::make_shared<HeldColumns>();
  const Budget& budget = store->budget();
  const bool engine_may_hold =
      holder.options.engine != EngineKind::automatic || store->engine()->holds_data();
  if (all_bytes <= budget.limit_bytes() && engine_may_hold) return held;
  std::ranges::sort(small, {},
                    [](const SourceColumn* column) { return column->rows->data_bytes(); });
  const std::uint64_t free_bytes = budget.claimable_bytes();
  std::uint64_t left_bytes = (free_bytes - std::min(free_bytes, batch_bytes)) / kHeldShare;
  for (SourceColumn* column : small) {
    const std::uint64_t bytes = column->rows->data_bytes();
    if (bytes > left_bytes) break;
    left_bytes -= bytes;
    held->columns.push_back({column->rows, Memory(bytes, /*prefault=*/false, "held columns")});
    column->part.held = held->columns.back().bytes.data();
  }
  return held;
}

void check_mixture(const std::vector<SourceReader>& sources) {
  const std::vector<SourceColumn>& first = sources.front().columns;
  for (std::size_t i = 1; i < sources.size(); ++i) {
    const std::vector<SourceColumn>& here = sources[i].columns;
    const std::string source = "source " + count_text(i) + " of the mixture has ";
    if (here.size() != first.size()) {
      throw std::invalid_argument(source + count_text(here.size()) + " columns, but source 0 has " +
                                  count_text(first.size()));
    }
    for (std::size_t column = 0; column < here.size(); ++column) {
      if (here[column].type != first[column].type) {
        throw std::invalid_argument(source + here[column].type + " in column " +
                                    count_text(column) + ", but source 0 has " +
                                    first[column].type);
      }
      if (here[column].part.table == first[column].part.table) continue;
      throw std::invalid_argument(source + "ragged columns grouped differently from source 0, at " +
                                  "column " + count_text(column));
    }
  }
}

void check_reads(const Dataset& dataset) {
  if (dataset.reads_per_part() <= Engine::kMaxReads) return;
  throw std::invalid_argument("the largest sample has " + format_bytes(dataset.sample_bytes()) +
                              " in up to " + count_text(dataset.reads_per_part()) +
                              " separate places in files, but at most " +
                              count_text(Engine::kMaxReads) + " can be read together");
}

// Throws std::invalid_argument unless sparse rows and the options about them fit together.
void check_dense(const std::vector<SourceColumn>& columns, const LoaderOptions& options) {
  const auto sparse = static_cast<std::size_t>(std::ranges::count_if(
      columns, [](const SourceColumn& column) { return column.sparse != nullptr; }));
  if (!options.dense) {
    if (sparse == 0 || columns.size() == 2) return;
    throw std::invalid_argument(
        "dense is required: sparse rows beside other columns can only be delivered as dense rows");
  }
  if (sparse == 0)
    throw std::invalid_argument("dense is for sparse rows, but there are none; leave it out");
  if (sparse > 1 && options.dense->columns) {
    throw std::invalid_argument("columns: there are " + count_text(sparse) +
                                " sparse matrices, so columns is ambiguous; leave it out");
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].sparse)
      ++i;  // its indices
    else if (columns[i].part.table) {
      throw std::invalid_argument(
          "dense: ragged data and dense rows cannot be combined in one loader");
    }
  }
}

// What is delivered of these columns as dense rows.
std::shared_ptr<const Dataset> dense_of(std::shared_ptr<const Dataset> stored,
                                        const std::vector<SourceColumn>& columns,
                                        const DenseOptions& options) {
  const std::optional<DenseType> type = dense_type_named(options.dtype);
  if (!type) {
    throw std::invalid_argument("dtype: dense rows are float16, float32 or float64, not " +
                                options.dtype);
  }
  std::vector<Dense::Output> outputs;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Dense::Output& output = outputs.emplace_back(Dense::Output{.field = i});
    const std::shared_ptr<Csr::Impl>& sparse = columns[i].sparse;
    if (!sparse) continue;
    output.rows = std::make_shared<const DenseRows>(sparse->data->rows->dtype(),
                                                    *token_type(sparse->indices->rows->dtype()),
                                                    sparse->columns, *type, options.columns);
    ++i;
  }
  return std::make_shared<const Dense>(std::move(stored), std::move(outputs));
}

// A single array is read as it is; everything else as columns.
std::shared_ptr<const Dataset> dataset_of(const std::vector<SourceReader>& sources) {
  const std::vector<SourceColumn>& first = sources.front().columns;
  if (sources.size() == 1 && first.size() == 1 && first[0].rows) return first[0].rows;
  std::vector<Columns::Source> all;
  for (const SourceReader& source : sources) {
    Columns::Source& parts = all.emplace_back();
    for (const SourceColumn& column : source.columns) parts.push_back(column.part);
  }
  return std::make_shared<const Columns>(std::move(all));
}

}  // namespace

LoaderData columns_data(const Weighted<LoaderColumns>& weighted, bool mixture,
                        const LoaderOptions& options) {
  if (weighted.empty()) throw std::invalid_argument("the list of sources is empty; give one");
  std::vector<SourceReader> sources;
  StoreHolder::Holders holders;
  for (const auto& [columns, weight] : weighted) {
    if (columns.empty()) throw std::invalid_argument("columns: there are none; give at least one");
    SourceReader& source = sources.emplace_back(sources.empty() ? 0 : sources.back().next_shard());
    for (const LoaderColumn& column : columns) std::visit(source, column);
    source.check_lengths();
    holders.insert(holders.end(), source.holders.begin(), source.holders.end());
  }
  check_mixture(sources);
  check_dense(sources.front().columns, options);
  LoaderData data{.mixture = mixture};
  data.holder = join_holders(holders, /*share=*/!mixture, options.memory_bytes);
  const auto held = hold_columns(&sources, *data.holder, options.batch_size);
  if (!held->columns.empty()) {
    data.holds.push_back({.what = "held columns", .bytes = held->bytes()});
    data.prepare = [held](Store& store) { held->read(store); };
  }
  std::uint64_t offsets_bytes = 0;
  for (const SourceReader& source : sources) offsets_bytes += source.offsets_bytes;
  if (offsets_bytes > 0) data.holds.push_back({.what = "offsets", .bytes = offsets_bytes});
  data.dataset = dataset_of(sources);
  check_reads(*data.dataset);
  if (options.dense) {
    data.dataset = dense_of(data.dataset, sources.front().columns, *options.dense);
  }
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sizes.push_back(sources[i].columns.front().part.data->size());
    data.sources.push_back({.positions = sizes[i],
                            .samples = sizes[i],
                            .fingerprint = [source = sources[i]] { return source.fingerprint(); },
                            .weight = weighted[i].second});
  }
  data.sample_of = [sizes](std::size_t source, std::uint64_t row) {
    if (row < sizes[source]) return std::optional(row);
    throw std::out_of_range("when: row " + count_text(row) + " does not exist: there are " +
                            count_text(sizes[source]) + " rows");
  };
  return data;
}

}  // namespace lowtide
