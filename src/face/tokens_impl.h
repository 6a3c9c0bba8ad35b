// tokens_impl.h - what an open token stream is made of, shared by its copies and the Loaders made
// from it. Opened in open_tokens.cc; what it holds in one process is in tokens_live.cc, a batch of
// it in token_batch.cc.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/documents.h"
#include "dataset/token_stream.h"
#include "dataset/windows.h"
#include "face/store.h"
#include "format/tokens.h"
#include "loader/pool.h"
#include "lowtide/tokens.h"
#include "os/fork_notice.h"

namespace lowtide {

// Anything but the name of an integer type: std::invalid_argument that lists them.
[[nodiscard]] TokenType parse_token_type(std::string_view name);

// Throws std::invalid_argument unless a stream of so many tokens has a window of this size.
void check_block(std::uint64_t block_size, std::uint64_t tokens);

// What a format sees of a file; keeps it open.
[[nodiscard]] TokenFile token_file(const std::shared_ptr<File>& file);
// nullopt where there is no such file. Throws IoError.
[[nodiscard]] std::optional<TokenFile> open_beside(const std::string& path);

class TokenBatch::Impl {
 public:
  Impl(Lease lent, std::uint64_t windows_in, std::shared_ptr<const Windows> from)
      : lease(std::move(lent)),
        rows(windows_in),
        windows(std::move(from)),
        shape(windows->shape(rows)) {}

  Lease lease;
  std::uint64_t rows;
  std::shared_ptr<const Windows> windows;
  Windows::Shape shape;
};

class Tokens::Impl {
 public:
  [[nodiscard]] static std::shared_ptr<Impl> open(const std::vector<std::string>& paths,
                                                  const TokensOptions& options);
  Impl(std::shared_ptr<const TokenStream> stream, std::vector<TokenLayout> layouts,
       std::vector<Shard> index_shards, std::optional<std::uint64_t> eot_of,
       const StoreOptions& options);
  ~Impl() { notice_fork(); }

  // Made when first asked for; nullptr where the format has none. Claims its table.
  [[nodiscard]] std::shared_ptr<const Documents> documents();
  // `fill` gives the starts of windows first, first + 1, ...; it and `between` may throw.
  using FillStarts = std::function<void(std::uint64_t first, std::span<std::uint64_t> starts)>;
  [[nodiscard]] TokenBatch windows(std::uint64_t rows, const FillStarts& fill,
                                   std::uint64_t block_size, TokenType to, bool keep_starts,
                                   const std::function<void()>& between);
  [[nodiscard]] std::uint64_t fingerprint();
  void close();

  const std::shared_ptr<const TokenStream> stream;
  const std::vector<TokenLayout> layouts;  // of all files if they tell their documents, else none
  const std::optional<std::uint64_t> eot;
  const std::shared_ptr<StoreHolder> holder;

 private:
  // What a call of windows() asks for, but for the starts.
  struct Call {
    std::uint64_t rows = 0;
    std::uint64_t block_size = 0;
    TokenType to = TokenType::i64;
    bool keep_starts = false;
    [[nodiscard]] bool operator==(const Call& other) const = default;
  };
  // What the next call like it uses again.
  struct Buffers {
    Call call;
    std::shared_ptr<const Windows> windows = nullptr;
    std::shared_ptr<Pool> pool = nullptr;
    std::unique_ptr<Share> share = nullptr;  // of the buffers that wait
    std::uint64_t bytes = 0;                 // of one of them
    std::uint64_t piece_rows = 0;            // read at a time

    explicit Buffers(const Call& asked) : call(asked) {}
    Buffers(Buffers&&) = default;
    ~Buffers() {
      if (pool) pool->keep(0);  // a batch that is kept must not keep the rest of it
    }
  };
  // What belongs to one process, and ends with close().
  struct Live {
    std::shared_ptr<Store> store;
    Claim documents_claim;
    std::shared_ptr<const Documents> documents;
    std::optional<Buffers> buffers;  // of the last call of windows()
  };
  void notice_fork();
  [[nodiscard]] Live& live();  // with the lock held
  [[nodiscard]] Buffers make_buffers(Store& store, const Call& call) const;

  const std::shared_ptr<const Shards> index_shards_;
  std::mutex mutex_;
  ForkNotice fork_;
  std::unique_ptr<Live> live_;
  std::optional<std::uint64_t> fingerprint_;
};

}  // namespace lowtide
