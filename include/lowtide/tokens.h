// tokens.h - token files that are bigger than memory, delivered as windows for training.
//
//   auto tokens = lowtide::Tokens::open("train.bin");
//   lowtide::Batch batch = tokens.batch(12, 1024, seed);  // for an epoch: lowtide/loader.h
//   train(batch.as<std::int64_t>(lowtide::kX), batch.as<std::int64_t>(lowtide::kY));
//
// A window is block_size + 1 consecutive tokens: x is the first block_size of them, y the last
// block_size. All files that are opened together form one stream; windows cross from one file to
// the next.
#pragma once

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

#include "lowtide/address.h"
#include "lowtide/batch.h"
#include "lowtide/dtype.h"
#include "lowtide/error.h"
#include "lowtide/options.h"
#include "lowtide/state.h"
#include "lowtide/stats.h"

namespace lowtide {

// How to open token files.
struct TokensOptions {
  // The type of tokens without a header: NumPy's descr or name, such as "uint16" (the default). If
  // there is a header, it must agree. Required for MDS samples that are plain bytes.
  std::optional<std::string> dtype = std::nullopt;
  // "nanogpt", "llmc", "megatron", "olmo", "datatrove", "mds", "litdata" or "npy". Default:
  // recognised by the bytes and the name.
  std::optional<std::string> format = std::nullopt;
  // The token between documents, for formats that do not record document boundaries. It ends a
  // document; in llm.c files it begins one.
  std::optional<std::uint64_t> eot = std::nullopt;

  // The column that contains the tokens, for MDS. Default: "tokens", or the only column that can
  // contain them.
  std::optional<std::string> key = std::nullopt;

  ReadOptions read = {};
  // Signs the requests for objects. Default: requests for s3:// are signed with the keys of the
  // environment; others are not signed.
  SignRequest sign = nullptr;
  // Lists objects, for addresses with a pattern and for folders. Default: for s3://, the server of
  // the bucket is asked, unless `sign` is set; other addresses cannot be listed.
  ListObjects list = nullptr;
};

// The types in which tokens are delivered, by NumPy's names: "uint8", "int8", "uint16", ...
[[nodiscard]] std::vector<std::string_view> token_types();

// The columns of a batch of windows. kX and kY have rows() * block_size tokens each, of the
// requested dtype. The other two exist if separate_documents is set; their elements are
// std::int32_t.
inline constexpr std::size_t kX = 0;
inline constexpr std::size_t kY = 1;
// The position of each token of x in its document, counted from 0 at each document start and each
// window start.
inline constexpr std::size_t kPositions = 2;
// Where documents start in the tokens of x, all windows taken as one sequence: from 0 to rows() *
// block_size.
inline constexpr std::size_t kCuSeqlens = 3;

// An open token stream. Copies share one open stream and its budget. Any number of threads may call
// const members at the same time. In the child of a fork the files are opened again when they are
// first used.
class Tokens {
 public:
  class Impl;

  // Opens a file or a folder: the files that its index.json lists (MDS, LitData), or else all files
  // of one known format in it. A path that does not exist is a glob pattern or the prefix of a
  // Megatron pair. Reads only headers, and every index once. Holds 8 bytes per sample of MDS if
  // their lengths differ. Throws IoError, FormatError, and std::invalid_argument for a wrong
  // option.
  [[nodiscard]] static Tokens open(const std::string& path, const TokensOptions& options = {});
  // Opens several files as one stream, in this order. Their format and dtype must be equal. Empty
  // files among others are skipped. Throws as above.
  [[nodiscard]] static Tokens open(std::span<const std::string> paths,
                                   const TokensOptions& options = {});

  // The number of tokens.
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
  // size. Throws std::out_of_range, IoError, FormatError (the file was truncated), and
  // std::invalid_argument if the stream is closed or `out` has the wrong size.
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

  // The number of documents; nullopt if the format does not record them.
  [[nodiscard]] std::optional<std::uint64_t> documents() const;
  // Writes the number of the first token of documents first, first + 1, ... to `out`. Document
  // documents(), the one after the last, starts at size(). Throws std::out_of_range, and
  // std::invalid_argument if the format does not record documents.
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
  explicit Tokens(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace lowtide
