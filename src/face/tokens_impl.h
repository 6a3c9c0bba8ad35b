// tokens_impl.h - the implementation of an open token stream, shared by its copies and its Loaders.
// open_tokens.cc opens it, tokens_live.cc has what it holds in one process.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "dataset/documents.h"
#include "dataset/token_stream.h"
#include "dataset/windows.h"
#include "face/store.h"
#include "loader/pool.h"
#include "lowtide/tokens.h"
#include "os/per_process.h"
#include "token_format/tokens.h"

namespace lowtide {

// Throws std::invalid_argument, which lists the names, for anything but the name of an integer
// type.
[[nodiscard]] TokenType parse_token_type(std::string_view name);

// Throws std::invalid_argument unless a stream of this many tokens has a window of this size.
void check_block(std::uint64_t block_size, std::uint64_t tokens);

// The local file as a format sees it. The result keeps the file open.
[[nodiscard]] TokenFile token_file(const std::shared_ptr<File>& file);
// nullopt if there is no such local file. Throws IoError.
[[nodiscard]] std::optional<TokenFile> open_beside(const std::string& path);

class Tokens::Impl {
 public:
  [[nodiscard]] static std::shared_ptr<Impl> open(const std::vector<std::string>& paths,
                                                  const TokensOptions& options);
  Impl(std::shared_ptr<const TokenStream> stream, std::vector<TokenLayout> layouts,
       std::vector<Shard> index_shards, std::vector<std::string> lists_of,
       std::optional<std::uint64_t> eot_of, const ReadOptions& options);
  [[nodiscard]] static const std::shared_ptr<Impl>& of(const Tokens& tokens) {
    return tokens.impl_;
  }

  // Made on first use, and claims its table; nullptr if the format does not record documents.
  [[nodiscard]] std::shared_ptr<const Documents> documents();
  // `fill` writes the starts of windows first, first + 1, ...; it and `between` may throw.
  using FillStarts = std::function<void(std::uint64_t first, std::span<std::uint64_t> starts)>;
  [[nodiscard]] Batch windows(std::uint64_t rows, const FillStarts& fill, std::uint64_t block_size,
                              TokenType to, bool keep_starts, const std::function<void()>& between);
  [[nodiscard]] std::uint64_t fingerprint();
  void close();

  const std::shared_ptr<const TokenStream> stream;
  const std::vector<TokenLayout> layouts;  // of all files if they record documents, else empty
  const std::vector<std::string> lists;    // the paths of every index.json that listed files
  const std::optional<std::uint64_t> eot;
  const std::shared_ptr<StoreHolder> holder;

 private:
  // The arguments of a call of windows() without the starts.
  struct Call {
    std::uint64_t rows = 0;
    std::uint64_t block_size = 0;
    TokenType to = TokenType::i64;
    bool keep_starts = false;
    [[nodiscard]] bool operator==(const Call& other) const = default;
  };
  // What the next call with the same arguments reuses.
  struct Buffers {
    Call call;
    std::shared_ptr<const Windows> windows = nullptr;
    std::shared_ptr<Pool> pool = nullptr;
    std::unique_ptr<Share> share = nullptr;  // of the spare buffers
    std::uint64_t bytes = 0;                 // of one buffer
    std::uint64_t piece_rows = 0;            // windows read at a time

    explicit Buffers(const Call& asked) : call(asked) {}
    Buffers(Buffers&&) = default;
    ~Buffers() {
      if (pool) pool->keep(0);  // a batch that the user keeps must not keep the spare buffers
    }
  };
  // What ends with close().
  struct Live {
    std::shared_ptr<Store> store;
    Claim documents_claim;
    std::shared_ptr<const Documents> documents;
    std::optional<Buffers> buffers;  // of the last call of windows()
  };
  struct Here {
    Mutex mutex;
    std::unique_ptr<Live> live LOWTIDE_GUARDED_BY(mutex);
  };
  [[nodiscard]] Live& live(Here& here) LOWTIDE_REQUIRES(here.mutex);
  [[nodiscard]] ReadOptions index_options() const;
  [[nodiscard]] Documents::ReadIndexes index_reader() const;
  [[nodiscard]] Buffers make_buffers(Store& store, const Call& call) const;

  const std::shared_ptr<const Shards> index_shards_;
  PerProcess<Here> here_;
  std::atomic<std::uint64_t> fingerprint_ = 0;  // 0: not computed yet
};

}  // namespace lowtide
