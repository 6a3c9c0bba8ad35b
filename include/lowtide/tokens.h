// tokens.h - token files that are bigger than memory, delivered as windows for training.
//
//   auto tokens = lowtide::Tokens::open("train.bin");
//   lowtide::Loader loader(tokens, {.batch_size = 12, .block_size = 1024, .seed = 1337});
//   for (const lowtide::Batch& batch : loader) {
//     train(batch.as<std::int64_t>(lowtide::kX), batch.as<std::int64_t>(lowtide::kY));
//   }
//
// A window is block_size + 1 consecutive tokens: x is the first block_size of them, y the last.
// All files that are opened together form one stream; windows cross from one file to the next.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/batch.h"
#include "lowtide/dtype.h"
#include "lowtide/error.h"
#include "lowtide/options.h"
#include "lowtide/state.h"
#include "lowtide/stats.h"

namespace lowtide {

// How to open token files.
struct TokensOptions {
  // The type of tokens without a header: NumPy's descr or name, such as "uint16" (the default). It
  // must agree with a header.
  std::optional<std::string> dtype = std::nullopt;
  // "nanogpt", "llmc", "megatron", "olmo" or "npy". Default: recognised by the bytes.
  std::optional<std::string> format = std::nullopt;
  // The token between documents, for formats that do not record document boundaries. It ends a
  // document; in llm.c files it begins one.
  std::optional<std::uint64_t> eot = std::nullopt;

  ReadOptions read = {};
};

// The types in which tokens are delivered, by NumPy's names: "uint8", "int8", "uint16", ...
[[nodiscard]] std::vector<std::string_view> token_types();

// The columns of a batch of windows. kX and kY have rows() * block_size tokens each, of the dtype
// that was asked for. The other two exist if separate_documents is set; their elements are
// std::int32_t.
inline constexpr std::size_t kX = 0;
inline constexpr std::size_t kY = 1;
// For each token of x its position in its document, counted from 0 at each document start and each
// window start.
inline constexpr std::size_t kPositions = 2;
// Where documents start in the tokens of x, over all windows in turn, from 0 to rows() *
// block_size.
inline constexpr std::size_t kCuSeqlens = 3;

// An open token stream. Copies share one open stream and its budget. Any number of threads may call
// const members at the same time. In the child of a fork the files are opened again when they are
// first used.
class Tokens {
 public:
  class Impl;

  // Opens a file or a folder (all files of one known format in it). A path that does not exist is a
  // glob pattern or the prefix of a Megatron pair. Reads only headers, and a Megatron index once.
  // Throws IoError, FormatError, and std::invalid_argument for a wrong option.
  [[nodiscard]] static Tokens open(const std::string& path, const TokensOptions& options = {});
  // Opens several files as one stream, in this order. Their format and dtype must be equal. Empty
  // files among others are skipped. Throws as above.
  [[nodiscard]] static Tokens open(std::span<const std::string> paths,
                                   const TokensOptions& options = {});

  // How many tokens.
  [[nodiscard]] std::uint64_t size() const;
  // As stored.
  [[nodiscard]] const DType& dtype() const;
  // A word of TokensOptions::format.
  [[nodiscard]] const std::string& format() const;
  // The data files, without indexes and empty files.
  [[nodiscard]] std::vector<std::string> paths() const;
  // The budget in force.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  // As given when opening.
  [[nodiscard]] std::optional<std::uint64_t> eot() const;

  // Reads tokens first .. first + count - 1, as stored, into `out`, which must have exactly their
  // bytes. Throws std::out_of_range, IoError, FormatError (the file was truncated), and
  // std::invalid_argument if the stream is closed or `out` has another size.
  void read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  // Reads any tokens, as stored, in the order given into `out`; duplicates are allowed. Neighbours
  // are read together. Throws as read().
  void take(RowList list, std::span<std::byte> out) const;

  // The windows that start at these tokens. `dtype` ("int64", "int32", "uint16", ...) is the type
  // of x and y. A long list is read in slices, so that only the result grows with it; `between` is
  // called between two slices and may end the call by throwing. Throws std::out_of_range for a
  // window that does not lie inside the stream, std::invalid_argument for a token that does not fit
  // `dtype`, and as read().
  [[nodiscard]] Batch windows(RowList starts, std::uint64_t block_size,
                              std::string_view dtype = "int64",
                              const std::function<void()>& between = {}) const;
  // `batch_size` windows that start at random tokens: a pure function of the data and the seed.
  // `between` and exceptions are as in windows().
  [[nodiscard]] Batch batch(std::uint64_t batch_size, std::uint64_t block_size, std::uint64_t seed,
                            std::string_view dtype = "int64",
                            const std::function<void()>& between = {}) const;

  // How many documents; nullopt if the format does not record them.
  [[nodiscard]] std::optional<std::uint64_t> documents() const;
  // Writes the first tokens of documents first, first + 1, ... to `out`; for the number
  // documents() that is size(). Throws std::out_of_range, and std::invalid_argument if the format
  // does not record documents.
  void document_offsets(std::uint64_t first, std::span<std::int64_t> out) const;

  // A hash of the layout, the sizes of the shards and samples of the contents, read with at most 64
  // small reads. A copy of the data has the same fingerprint.
  [[nodiscard]] std::uint64_t fingerprint() const;

  // Throws std::invalid_argument if the stream is closed.
  [[nodiscard]] Stats stats() const;
  // Closes all copies. Later reads throw std::invalid_argument; loaders in progress continue.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  friend class Loader;
  explicit Tokens(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// What a Loader delivers.
struct LoaderOptions {
  std::uint64_t batch_size = 12;    // windows per step of one rank, at least 1
  std::uint64_t block_size = 1024;  // tokens, at least 1
  // Windows start at multiples of block_size; with OrderKind::random anywhere.
  OrderKind order = OrderKind::shuffle;
  std::uint64_t seed = 0;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  std::optional<std::uint64_t> epochs = std::nullopt;  // default: no end
  bool drop_last = true;  // false, with one rank only: the last batch of an epoch may be short
  // The most batches to read ahead. Default: as many as pay off.
  std::optional<std::uint64_t> prefetch = std::nullopt;
  std::string dtype = "int64";  // of x and y
  // A separate budget for this loader, in bytes. 0: the loader shares the budget of its tokens; a
  // mixture gets a separate one, as large as the largest of its sources.
  std::uint64_t memory_bytes = 0;
  bool separate_documents = false;  // adds the columns kPositions and kCuSeqlens
};

class Run;            // internal
class LoaderSources;  // internal

// Batches of windows, epoch after epoch, read ahead on threads of its own. One consumer at a time;
// cancel() may be called from any thread. In the child of a fork it continues from the same step
// with threads of its own.
class Loader {
 public:
  // Reading starts with the first next(). Throws std::invalid_argument for a wrong option, for
  // fewer windows than one step of all ranks needs and for a budget that is too small. If a file
  // has changed since it was opened, throws FormatError (truncated) or IoError (rewritten).
  Loader(const Tokens& tokens, const LoaderOptions& options);
  // Mixes sources by weight. In every prefix of the order each source has its share, to within 1
  // window (1.5 with more than two sources). A source that ends starts its own next epoch. Weights
  // must be above 0; only their ratios count. Throws as above.
  Loader(std::span<const std::pair<Tokens, double>> sources, const LoaderOptions& options);
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
  // Ends the loader: a next() that waits returns an empty batch, and so does every later one.
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
  // Where in an epoch a token of a source is an input; for the last token of the last window, where
  // it is a target. nullopt if that epoch leaves it out. Throws std::invalid_argument in random
  // order, std::out_of_range for a token or a source that does not exist.
  [[nodiscard]] std::optional<When> when(std::uint64_t token, std::uint64_t epoch,
                                         std::size_t source = 0) const;

  // The state after the last delivered batch. Reads the fingerprint of the data once.
  [[nodiscard]] State state() const;
  // Continues from a state. Throws std::invalid_argument, which names what differs: data,
  // block_size, order or seed.
  void restore(const State& state);

  [[nodiscard]] Stats stats() const;

 private:
  explicit Loader(std::shared_ptr<const LoaderSources> sources);

  std::shared_ptr<const LoaderSources> sources_;
  std::unique_ptr<Run> run_;
};

}  // namespace lowtide
