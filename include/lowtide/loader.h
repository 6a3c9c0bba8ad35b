// loader.h - batches for training, epoch after epoch, read ahead within a memory budget. Samples
// are windows of tokens, or rows of one or several arrays that are delivered together.
//
//   auto tokens = lowtide::Tokens::open("train.bin");
//   lowtide::Loader loader(tokens, {.batch_size = 12, .block_size = 1024, .seed = 1337});
//   for (const lowtide::Batch& batch : loader) {
//     train(batch.as<std::int64_t>(lowtide::kX), batch.as<std::int64_t>(lowtide::kY));
//   }
//
//   lowtide::Loader pairs({features, labels}, {.batch_size = 256, .epochs = 3});
//   for (const lowtide::Batch& batch : pairs) {
//     train(batch.as<float>(0), batch.as<std::int64_t>(1));
//   }
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lowtide/array.h"
#include "lowtide/batch.h"
#include "lowtide/csr.h"
#include "lowtide/options.h"
#include "lowtide/state.h"
#include "lowtide/stats.h"
#include "lowtide/tokens.h"

namespace lowtide {

// Samples of different lengths: sample i consists of rows offsets[i] to offsets[i + 1] - 1 of each
// array. A batch has one column per array, which holds the samples one after the other, and
// Batch::offsets().
struct RaggedArrays {
  std::vector<Array> values;  // in C order, of equal length
  // Non-decreasing, from 0 to at most that length. Borrowed: it must outlive the Loader.
  std::span<const std::int64_t> offsets;
  // True if the memory of `offsets` is held only for these samples. It then counts towards the
  // budget.
  bool claim_offsets = false;
};

// Throws FormatError, which names the entry, unless the offsets are valid in a RaggedArrays of this
// many values. A Loader calls it.
void check_offsets(std::span<const std::int64_t> offsets, std::uint64_t values);

// The documents of a token stream: each document is one sample, in the stored dtype. The format
// must record documents.
struct TokenDocuments {
  Tokens tokens;
};

// The source of one column. A sparse matrix on its own is delivered as it is stored: its values,
// then their indices, and Batch::offsets(). See LoaderOptions::dense.
using LoaderColumn = std::variant<Array, RaggedArrays, TokenDocuments, Csr>;
using LoaderColumns = std::vector<LoaderColumn>;

// How the rows of sparse matrices are expanded into dense ones. If a row stores several values for
// the same column, they are added.
struct DenseOptions {
  std::string dtype = "float32";  // or "float16", "float64"
  // Only these columns, in this order, of the only sparse matrix; duplicates are allowed.
  std::optional<std::vector<std::uint64_t>> columns = std::nullopt;
};

// What a Loader delivers.
struct LoaderOptions {
  std::uint64_t batch_size = 12;    // samples per step of one rank, at least 1
  std::uint64_t block_size = 1024;  // tokens per window, at least 1; for windows only
  // With OrderKind::random, samples are drawn with replacement, and windows start anywhere instead
  // of at multiples of block_size.
  OrderKind order = OrderKind::shuffle;
  std::uint64_t seed = 0;
  // A selection of the samples, in any order; duplicates are allowed. An epoch permutes this
  // selection. Not for a mixture.
  std::optional<RowSelection> rows = std::nullopt;
  // True if the memory of `rows` is held only for this loader. It then counts towards the budget.
  bool claim_rows = false;
  // Draws samples with replacement, by weight: one weight per sample, or per entry of `rows`,
  // finite and not negative. Replaces `order`. Not for a mixture. Borrowed only during the
  // constructor.
  std::optional<std::span<const double>> weights = std::nullopt;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  std::optional<std::uint64_t> epochs = std::nullopt;  // default: no end
  bool drop_last = true;  // false, with one rank only: the last batch of an epoch may be short
  // The most batches to read ahead. Default: as many as pay off.
  std::optional<std::uint64_t> prefetch = std::nullopt;
  std::string dtype = "int64";  // of x and y; for windows only
  // For sparse matrices. Required if there are other columns beside a sparse matrix.
  std::optional<DenseOptions> dense = std::nullopt;
  // A separate budget for this loader, in bytes. 0: the loader shares the budget of its tokens or
  // of its first column; a mixture gets a separate one, as large as the largest of its sources.
  std::uint64_t memory_bytes = 0;
  bool separate_documents = false;  // adds the columns kPositions and kCuSeqlens; for windows only
  // Pins the memory of batches, within the budget, so that a CUDA device can copy from it
  // asynchronously. The device is the current one of the thread that makes the loader. Once a batch
  // is released, its memory is reused only after the device has finished all work that was started
  // before, so you may release a batch right after starting its copy. CUDA's runtime library must
  // be loaded (why_no_pinning()). A child of a fork gets plain memory.
  bool pin_memory = false;
  // With pin_memory: memory is reused only after the work on the default stream and on blocking
  // streams has finished. If you copy on non-blocking streams, set this to false and keep each
  // batch until its copy has ended.
  bool fenced = true;
};

// Why this process cannot pin memory for a CUDA device; "" if it can.
[[nodiscard]] std::string why_no_pinning();

class Run;            // internal
class LoaderSources;  // internal
struct LoaderData;    // internal

// Batches of samples, epoch after epoch, read ahead on threads of its own. One consumer at a time;
// cancel() may be called from any thread. In the child of a fork it continues from the same step
// with threads of its own.
class Loader {
 public:
  // Reading starts with the first next(). Throws std::invalid_argument for a wrong option, for
  // columns of different lengths, for fewer samples than one step of all ranks needs, and for a
  // budget that is too small; std::out_of_range for a wrong entry of `rows`; and FormatError for
  // offsets that decrease or exceed their values. If a file has changed since it was opened, throws
  // FormatError (truncated) or IoError (rewritten).
  Loader(const Tokens& tokens, const LoaderOptions& options);
  // A batch has one column per array. Small columns are held in memory, within the budget.
  Loader(const LoaderColumns& columns, const LoaderOptions& options);
  // Mixes sources by weight. In every prefix of the order each source has its share, to within 1
  // sample (1.5 with more than two sources). A source that ends starts its own next epoch. Weights
  // must be above 0; only their ratios count. All sources must have the same columns. Throws as
  // above.
  Loader(std::span<const std::pair<Tokens, double>> sources, const LoaderOptions& options);
  Loader(std::span<const std::pair<LoaderColumns, double>> sources, const LoaderOptions& options);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  // Cancels. Waits only for reads that the kernel has already started.
  ~Loader();

  // The next batch, across epochs; an empty one after the last epoch and after cancel(). Blocks
  // until the batch has been read. Throws the first error of a reader (IoError, FormatError), with
  // step and path, and std::invalid_argument for a token that does not fit `dtype`; the next call
  // tries again.
  [[nodiscard]] Batch next();
  // As next(), but returns nullopt after `timeout`, so that the caller can check for Ctrl-C.
  [[nodiscard]] std::optional<Batch> next_for(std::chrono::milliseconds timeout);
  // The next batch if it belongs to this epoch, otherwise an empty one.
  [[nodiscard]] Batch next_in(std::uint64_t epoch);
  // For range-for: the rest of the current epoch. The next loop covers the next epoch.
  [[nodiscard]] BatchIterator<Loader> begin() { return {*this, epoch()}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }
  // Ends the loader: a next() that is waiting returns an empty batch, and so does every later call.
  void cancel() noexcept;

  // The steps of a whole epoch.
  [[nodiscard]] std::uint64_t steps() const;
  // The steps left in the current epoch; 0 after the last one.
  [[nodiscard]] std::uint64_t steps_left() const;
  // The epoch and the step of the next batch.
  [[nodiscard]] std::uint64_t epoch() const;
  [[nodiscard]] std::uint64_t step() const;

  // Continues at a step of an epoch (default: the current one). Steps are counted from the start of
  // the epoch under the current batch size and world size. O(1). Throws std::out_of_range.
  void seek(std::uint64_t step, std::optional<std::uint64_t> epoch = std::nullopt);
  // Leaves out steps first .. last - 1 of an epoch (default: the current one). They must not have
  // been delivered yet. Skips are saved in the state and stay in force: if you seek back or restore
  // that state, the steps are skipped again. The current and later epochs hold at most 16 ranges;
  // adjacent ranges count as one. Ranges of finished epochs are dropped first. Throws
  // std::invalid_argument.
  void skip(std::uint64_t first, std::uint64_t last,
            std::optional<std::uint64_t> epoch = std::nullopt);

  struct When {
    std::uint64_t step, rank, row;
  };
  // When an epoch delivers a row of a source. For windows, `row` is the number of a token, and the
  // result is where that token is an input, or for the last token of the last window, where it is a
  // target. nullopt if that epoch leaves it out. If `rows` repeats a row, the first occurrence.
  // Throws std::invalid_argument for samples that are drawn with replacement, and std::out_of_range
  // for a row, a token or a source that does not exist.
  [[nodiscard]] std::optional<When> when(std::uint64_t row, std::uint64_t epoch,
                                         std::size_t source = 0) const;

  // The state after the last delivered batch. Reads the fingerprint of the data once.
  [[nodiscard]] State state() const;
  // Continues from a state. Throws std::invalid_argument if data, rows, weights, block_size, order
  // or seed differ; the message names which.
  void restore(const State& state);

  [[nodiscard]] Stats stats() const;

 private:
  explicit Loader(std::shared_ptr<const LoaderSources> sources);
  Loader(LoaderData data, const LoaderOptions& options);

  std::shared_ptr<const LoaderSources> sources_;
  std::unique_ptr<Run> run_;
};

}  // namespace lowtide
