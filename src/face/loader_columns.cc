// What a Loader of columns reads: rows of one or several arrays that come together.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hash.h"
#include "dataset/columns.h"
#include "dataset/ragged.h"
#include "engine/engine.h"
#include "face/array_impl.h"
#include "face/loader_data.h"
#include "face/tokens_impl.h"
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

std::string count_text(std::uint64_t value) {
  return std::to_string(value);
}

// One column as it will be read. `rows` are its rows if they are all in one place.
struct SourceColumn {
  Columns::Part part;
  std::shared_ptr<const Rows> rows;
  std::string type;  // what must be equal in all sources of a mixture
};

// The columns of one source, with their files numbered in one list.
class SourceReader {
 public:
  explicit SourceReader(std::uint32_t first_shard) : shard_(first_shard) {}

  void operator()(const Array& array) {
    const auto& impl = Array::Impl::of(array);
    auto rows = numbered(*impl);
    SourceColumn column;
    column.part.data = rows;
    column.type = type_of(*rows);
    column.rows = std::move(rows);
    add(std::move(column), impl->holder);
    fingerprints_.emplace_back([impl] { return impl->fingerprint(); });
  }

  void operator()(const RaggedArrays& ragged) {
    if (ragged.values.empty()) throw std::invalid_argument("ragged data needs an array of values");
    const auto offsets = std::make_shared<const ListedOffsets>(ragged.offsets);
    for (const Array& array : ragged.values) {
      const auto& impl = Array::Impl::of(array);
      const auto rows = numbered(*impl);
      if (rows->fortran_order() && rows->parts() > 1) {
        throw std::invalid_argument("ragged values must be in C order, but " + rows->path(shard_) +
                                    " is in Fortran order");
      }
      check_offsets(ragged.offsets, rows->size());
      const auto data = std::make_shared<const Ragged>(rows, offsets);
      add_ragged(data, "ragged " + type_of(*rows), impl->holder);
      fingerprints_.emplace_back([impl] { return impl->fingerprint(); });
    }
    ++table_;
    if (ragged.claim_offsets) offsets_bytes += ragged.offsets.size_bytes();
    fingerprints_.emplace_back(
        [table = ragged.offsets] { return hash_with(0, std::as_bytes(table)); });
  }

  void operator()(const TokenDocuments& source) {
    const auto& impl = Tokens::Impl::of(source.tokens);
    check_open(*impl->holder);
    const auto documents = impl->documents();
    if (!documents) {
      throw std::invalid_argument("documents: " + impl->stream->format() +
                                  " files do not record where documents start");
    }
    const auto data = std::make_shared<const Ragged>(impl->stream, documents, shard_);
    add_ragged(data, "ragged " + impl->stream->dtype().descr(), impl->holder);
    ++table_;
    fingerprints_.emplace_back([impl] { return hash_with(1, impl->fingerprint()); });
  }

  // Throws std::invalid_argument unless all columns have the same length.
  void check_lengths() const {
    for (std::size_t i = 1; i < columns.size(); ++i) {
      const std::uint64_t first = columns[0].part.data->size(), here = columns[i].part.data->size();
      if (first == here) continue;
      throw std::invalid_argument("columns must have the same length, but column 0 has " +
                                  count_text(first) + " rows and column " + count_text(i) +
                                  " has " + count_text(here));
    }
  }

  [[nodiscard]] std::uint32_t next_shard() const { return shard_; }
  // That of a single array is the array's own.
  [[nodiscard]] std::uint64_t fingerprint() const {
    if (fingerprints_.size() == 1) return fingerprints_[0]();
    std::uint64_t hash = fingerprints_.size();
    for (const auto& one : fingerprints_) hash = hash_with(hash, one());
    return hash;
  }

  std::vector<SourceColumn> columns;
  StoreHolder::Holders holders;     // of the columns
  std::uint64_t offsets_bytes = 0;  // that count towards the budget

 private:
  static void check_open(StoreHolder& holder) {
    if (holder.closed()) (void)holder.store();  // throws
  }
  [[nodiscard]] std::shared_ptr<const Rows> numbered(const Array::Impl& impl) const {
    check_open(*impl.holder);
    if (impl.rows->shape().empty()) {
      throw std::invalid_argument(impl.rows->path(0) + " is a 0-d array: it has no rows");
    }
    return std::make_shared<const Rows>(impl.rows->from_shard(shard_));
  }
  [[nodiscard]] static std::string type_of(const Rows& rows) {
    std::vector<std::uint64_t> row(rows.shape().begin() + 1, rows.shape().end());
    return rows.dtype().descr() + " rows of shape " + shape_text(row);
  }
  void add(SourceColumn column, const std::shared_ptr<StoreHolder>& holder) {
    column.part.first_shard = shard_;
    shard_ += static_cast<std::uint32_t>(holder->shards->size());
    columns.push_back(std::move(column));
    holders.push_back(holder);
  }

  void add_ragged(std::shared_ptr<const Dataset> data, std::string type,
                  const std::shared_ptr<StoreHolder>& holder) {
    SourceColumn column;
    column.part.data = std::move(data);
    column.part.table = table_;
    column.type = std::move(type);
    add(std::move(column), holder);
  }

  std::uint32_t shard_;
  std::uint32_t table_ = 0;  // the next one; ragged data has one, whether or not others are equal
  std::vector<std::function<std::uint64_t()>> fingerprints_;
};

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
      throw std::invalid_argument(source + "offsets for other columns than source 0, in column " +
                                  count_text(column));
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

void check_offsets(std::span<const std::int64_t> offsets, std::uint64_t values) {
  if (offsets.empty()) throw FormatError("offsets: the list is empty; it begins with 0");
  if (offsets[0] != 0) {
    throw FormatError("offsets: entry 0 is " + std::to_string(offsets[0]) + ", but must be 0");
  }
  const auto falls = std::ranges::adjacent_find(offsets, std::ranges::greater());
  if (falls != offsets.end()) {
    const auto at = static_cast<std::uint64_t>(falls - offsets.begin());
    throw FormatError("offsets: entry " + count_text(at + 1) + " is " + std::to_string(falls[1]) +
                      ", less than entry " + count_text(at) + ", which is " +
                      std::to_string(falls[0]));
  }
  if (static_cast<std::uint64_t>(offsets.back()) > values) {
    throw FormatError("offsets: entry " + count_text(offsets.size() - 1) + " is " +
                      std::to_string(offsets.back()) + ", but there are only " +
                      count_text(values) + " values");
  }
}

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
