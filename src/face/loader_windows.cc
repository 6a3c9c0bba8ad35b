// What a Loader of windows reads: one stream of tokens, or several.
#include <stdexcept>
#include <string>
#include <utility>

#include "dataset/windows.h"
#include "engine/engine.h"
#include "face/loader_data.h"
#include "face/tokens_impl.h"

namespace lowtide {
namespace {

WindowsSource source_of(Tokens::Impl& tokens, const LoaderOptions& options) {
  WindowsSource source{.stream = tokens.stream};
  if (!options.separate_documents) return source;
  source.documents = tokens.documents();
  source.eot = tokens.eot;
  if (!source.documents && !source.eot) {
    throw std::invalid_argument("documents: " + tokens.stream->format() +
                                " files do not record where documents start, so they cannot "
                                "be separated; give eot, the token between documents, when "
                                "opening them");
  }
  return source;
}

void check_reads(const Windows& windows, std::uint64_t block_size) {
  if (windows.reads_per_part() <= Engine::kMaxReads) return;
  throw std::invalid_argument(
      "block_size: a window of " + std::to_string(block_size) + " + 1 tokens can span " +
      std::to_string(windows.reads_per_part()) + " separate places in files, but at most " +
      std::to_string(Engine::kMaxReads) + " can be read together; use a smaller block_size");
}

// The window whose x has a token. The last token of the last window is only ever a target.
std::optional<std::uint64_t> window_of(std::uint64_t token, std::uint64_t tokens,
                                       std::uint64_t block_size) {
  if (token >= tokens) {
    throw std::out_of_range("when: token " + std::to_string(token) + " is outside the stream of " +
                            std::to_string(tokens) + " tokens");
  }
  const std::uint64_t windows = (tokens - 1) / block_size;
  std::uint64_t window = token / block_size;
  if (window == windows && token == windows * block_size) --window;
  return window < windows ? std::optional(window) : std::nullopt;
}

}  // namespace

LoaderData windows_data(const Weighted<std::shared_ptr<Tokens::Impl>>& sources, bool mixture,
                        const LoaderOptions& options) {
  if (sources.empty()) throw std::invalid_argument("the list of sources is empty; give one");
  const std::uint64_t block_size = options.block_size;
  // With `rows` or `weights` the samples are the windows that these number.
  const bool anywhere = options.order == OrderKind::random && !options.weights;
  if (anywhere && options.rows) {
    throw std::invalid_argument(
        "rows: they number windows, but with order \"random\" windows start anywhere; use another "
        "order, or weights");
  }
  LoaderData data{.mixture = mixture, .block_size = block_size};
  StoreHolder::Holders holders;
  std::vector<WindowsSource> windows;
  std::vector<std::uint64_t> sizes;
  std::uint32_t first_shard = 0;
  const WindowsOptions how{.block_size = block_size,
                           .to = parse_token_type(options.dtype),
                           .anywhere = anywhere,
                           .separate = options.separate_documents};
  for (const auto& [tokens, weight] : sources) {
    if (tokens->holder->closed()) (void)tokens->holder->store();  // throws
    const std::uint64_t size = tokens->stream->size();
    check_block(block_size, size);
    windows.push_back(source_of(*tokens, options));
    windows.back().first_shard = first_shard;
    first_shard += static_cast<std::uint32_t>(tokens->stream->shards()->size());
    holders.push_back(tokens->holder);
    sizes.push_back(size);
    // One position per window, counting windows that do not overlap.
    data.sources.push_back({.positions = (size - 1) / block_size,
                            .samples = Windows::count(size, how),
                            .fingerprint = [held = tokens] { return held->fingerprint(); },
                            .weight = weight});
  }
  const auto made = std::make_shared<const Windows>(std::move(windows), how);
  check_reads(*made, block_size);
  data.dataset = made;
  data.holder = join_holders(holders, /*share=*/!mixture, options.memory_bytes);
  data.sample_of = [sizes, block_size](std::size_t source, std::uint64_t token) {
    return window_of(token, sizes[source], block_size);
  };
  return data;
}

}  // namespace lowtide
