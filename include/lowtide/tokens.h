// tokens.h - token files bigger than memory, as windows for training.
//
//   auto tokens = lowtide::Tokens::open("train.bin");
//   lowtide::Loader loader(tokens, {.batch_size = 12, .block_size = 1024, .seed = 1337});
//   while (auto batch = loader.next()) train(batch->x(), batch->y());
//
// A window is block_size + 1 consecutive tokens: x is the first block_size of them, y the last. A
// token file is one stream, whatever shards it lies in; windows cross from one file to the next.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/array.h"

namespace lowtide {

struct TokensOptions {
  // Of tokens without a header; must agree with a header. NumPy's descr or name: "uint16".
  std::optional<std::string> dtype = std::nullopt;
  // "nanogpt", "llmc", "megatron", "olmo", "npy"; found by the bytes if not given.
  std::optional<std::string> format = std::nullopt;
  // The token between documents, for formats that do not write where documents are. It ends its
  // document; in llm.c files it begins one.
  std::optional<std::uint64_t> eot = std::nullopt;

  // 0: 256 MiB, or an eighth of the memory that this process may use if that is less.
  std::uint64_t memory_bytes = 0;
  EngineKind engine = EngineKind::automatic;
  CacheMode cache = CacheMode::automatic;
  // Reads from the disk that lie at most this many bytes apart may share one request. Empty: as
  // many as the disk's own prices suggest (Stats::gap_bytes). 0: only reads that touch or overlap.
  // What lies between two reads is read and thrown away, so this bounds bytes_read per byte asked.
  std::optional<std::uint64_t> gap_bytes = std::nullopt;
  // To measure the disk: what is cached is neither used nor dropped. Needs direct I/O to mean it.
  bool past_cache = false;
};

// Windows as one lease: x and y stay valid and unchanged for as long as the batch lives, whatever
// else is gone; then the buffer serves another. Movable; the bytes are yours to write.
class TokenBatch {
 public:
  class Impl;
  explicit TokenBatch(std::unique_ptr<Impl> impl);
  TokenBatch(TokenBatch&&) noexcept;
  TokenBatch& operator=(TokenBatch&&) noexcept;
  ~TokenBatch();

  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::uint64_t block_size() const;
  [[nodiscard]] std::byte* x() const;  // rows() * block_size() tokens of the type asked for
  [[nodiscard]] std::byte* y() const;
  // The number of each window, or its first token where windows start anywhere. Empty for
  // Tokens::windows, whose caller has the starts.
  [[nodiscard]] std::span<const std::uint64_t> samples() const;
  [[nodiscard]] std::uint64_t step() const;  // in its epoch, from 0
  [[nodiscard]] std::uint64_t epoch() const;

  // With documents apart: of each token of x its place in its document, from 0 at each document
  // start and each window start; nullptr otherwise.
  [[nodiscard]] std::int32_t* positions() const;
  // With documents apart: where documents start in the tokens of x, all windows in a row, from 0 to
  // rows() * block_size(); empty otherwise.
  [[nodiscard]] std::span<std::int32_t> cu_seqlens() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Any thread may call any const member at the same time. Copies share one open stream.
class Tokens {
 public:
  class Impl;

  // A file, a folder (all files of one known format in it), or, if no such path exists, a glob or
  // the prefix of a Megatron pair. Headers only are read, and Megatron's index once.
  // Throws IoError, FormatError, and std::invalid_argument for a bad option.
  [[nodiscard]] static Tokens open(const std::string& path, const TokensOptions& options = {});
  // Several files, one behind the other: same format, same dtype. Empty files among others are
  // skipped.
  [[nodiscard]] static Tokens open(std::span<const std::string> paths,
                                   const TokensOptions& options = {});

  [[nodiscard]] std::uint64_t size() const;  // tokens
  [[nodiscard]] const DType& dtype() const;  // as stored
  [[nodiscard]] const std::string& format() const;
  [[nodiscard]] std::vector<std::string> paths() const;  // of the data
  [[nodiscard]] std::uint64_t memory_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> eot() const;

  // Tokens first .. first + count - 1 as stored, into `out`.
  void read(std::uint64_t first, std::uint64_t count, std::byte* out) const;

  // Any tokens as stored, in the order given, duplicates allowed, read together and not one by one.
  // Throws std::out_of_range.
  void take(RowList list, std::byte* out) const;

  // The windows that start at your own places. `dtype` ("int64", "int32", "uint16", ...) is that of
  // x and y. Throws std::out_of_range for a window that is not all inside, std::invalid_argument
  // for a token that does not fit the type. A long list is read in pieces, so that only the result
  // grows with it; `between` is called between two of them and may end the call by throwing.
  [[nodiscard]] TokenBatch windows(RowList starts, std::uint64_t block_size,
                                   std::string_view dtype = "int64",
                                   const std::function<void()>& between = {}) const;
  // Windows at random places: a pure function of the seed.
  [[nodiscard]] TokenBatch batch(std::uint64_t batch_size, std::uint64_t block_size,
                                 std::uint64_t seed, std::string_view dtype = "int64",
                                 const std::function<void()>& between = {}) const;

  // Documents, where the format writes where they are; else nullopt.
  [[nodiscard]] std::optional<std::uint64_t> documents() const;
  // The first token of documents first .. first + count - 1; that of documents() is size().
  void document_offsets(std::uint64_t first, std::uint64_t count, std::int64_t* out) const;

  // Of the layout, the sizes of the shards and samples of the contents (at most 64 small reads):
  // the same for a copy of the data, another for other data.
  [[nodiscard]] std::uint64_t fingerprint() const;

  [[nodiscard]] Stats stats() const;
  void close();  // further calls throw std::invalid_argument; loaders under way go on
  [[nodiscard]] bool closed() const;

 private:
  friend class Loader;
  explicit Tokens(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// shuffle and sequential: windows start at multiples of block_size, each once an epoch. random:
// they start anywhere, with replacement.
enum class WindowOrder { shuffle, random, sequential };
[[nodiscard]] WindowOrder parse_window_order(std::string_view word);
[[nodiscard]] std::string_view window_order_word(WindowOrder order);

struct LoaderOptions {
  std::uint64_t batch_size = 12;  // windows of one rank in a step
  std::uint64_t block_size = 1024;
  WindowOrder order = WindowOrder::shuffle;
  std::uint64_t seed = 0;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  std::optional<std::uint64_t> epochs = std::nullopt;  // no end if not given
  bool drop_last = true;  // false, with one rank only: the last batch of an epoch is short
  std::optional<std::uint64_t> prefetch = std::nullopt;  // batches ahead, at most; as many as pay
  std::string dtype = "int64";
  // 0: the loader shares the budget of its tokens, or, over several, has the largest of theirs for
  // itself. Else it has a budget of its own.
  std::uint64_t memory_bytes = 0;
  bool separate_documents = false;  // TokenBatch::positions and cu_seqlens
};

// Where a run is: what was delivered, not what was read ahead. Resumes under any batch size and
// world size; nothing is replayed.
struct LoaderState {
  // Positions first .. last - 1 of an epoch that are left out.
  struct Skipped {
    std::uint64_t epoch, first, last;
  };
  static constexpr std::uint32_t kFormat = 1;

  std::uint32_t format = kFormat;
  std::uint64_t fingerprint = 0;  // of the data, and of the weights of a mixture
  std::uint64_t block_size = 0;
  WindowOrder order = WindowOrder::shuffle;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // of the epoch's order, over all ranks
  std::uint64_t step = 0;      // what the next one is called
  std::uint64_t base = 0;      // of a mixture: windows before this epoch
  std::vector<Skipped> skipped = {};
};

// Reads ahead of you on threads of its own. One consumer at a time. After a fork the child goes on
// from the same place with threads of its own.
class Loader {
 public:
  class Impl;
  // Throws std::invalid_argument: a bad option, fewer windows than one step of all ranks needs, a
  // budget too small.
  Loader(const Tokens& tokens, const LoaderOptions& options);
  // A mixture by weight: of every prefix of the order each source has its share, to within 1 (1.5
  // for more than two). A source that ends starts its own next epoch.
  Loader(std::span<const std::pair<Tokens, double>> sources, const LoaderOptions& options);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  // The next batch, on and on over epochs; nullopt after the last epoch. Throws the first error of
  // a reader, with step and path.
  [[nodiscard]] std::optional<TokenBatch> next();
  // The same, but gives up after `timeout` so that a caller can look for Ctrl-C: then `timed_out`
  // is true.
  [[nodiscard]] std::optional<TokenBatch> next_for(std::chrono::milliseconds timeout,
                                                   bool* timed_out);
  void cancel() noexcept;  // from any thread: ends a waiting next() with nullopt

  [[nodiscard]] std::uint64_t steps() const;       // of one whole epoch
  [[nodiscard]] std::uint64_t steps_left() const;  // of the present epoch; 0 after the last one
  [[nodiscard]] std::uint64_t epoch() const;       // of the next batch
  [[nodiscard]] std::uint64_t step() const;        // of the next batch

  // Goes to a step of an epoch (of the present one, if not given), counted from the start of the
  // epoch under the present sizes. Throws std::out_of_range.
  void seek(std::uint64_t step, std::optional<std::uint64_t> epoch = std::nullopt);
  // Leaves out steps first .. last - 1 of an epoch (of the present one, if not given): they must
  // still be ahead. Part of the state, also once they are behind: who goes back passes them again.
  // At most 16 ranges (those that touch are one) in the present epoch and those to come, else
  // std::invalid_argument; those of epochs that are over make way for new ones.
  void skip(std::uint64_t first, std::uint64_t last,
            std::optional<std::uint64_t> epoch = std::nullopt);

  struct When {
    std::uint64_t step, rank, row;
  };
  // Where in an epoch a token of a source is an input (the last token of the last window: a
  // target); nullopt where that epoch leaves it out. Throws std::invalid_argument in random order,
  // std::out_of_range for a token that is not there.
  [[nodiscard]] std::optional<When> when(std::uint64_t token, std::uint64_t epoch,
                                         std::size_t source = 0) const;

  [[nodiscard]] LoaderState state() const;
  // Throws std::invalid_argument that says what differs: data, block_size, order, seed.
  void restore(const LoaderState& state);

  [[nodiscard]] Stats stats() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lowtide
