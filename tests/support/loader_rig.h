// loader_rig.h - two small streams of tokens, and loaders of every order over them.
#pragma once

#include <utility>
#include <vector>

#include "lowtide/loader.h"
#include "support/token_stream.h"

namespace lowtide {

// 100 windows of 10 tokens, and 39 more.
struct LoaderRig : TokenRig {
  LoaderRig() : TokenRig(1003), other(open("other.bin", made_tokens(400, 77))) {}

  [[nodiscard]] Loader load(LoaderOptions options) const { return Loader(tokens, options); }
  [[nodiscard]] Loader mix(const LoaderOptions& options) const {
    const std::vector<std::pair<Tokens, double>> sources{{tokens, 0.7}, {other, 0.3}};
    return Loader(sources, options);
  }
  [[nodiscard]] Loader any(int kind, LoaderOptions options) const {
    if (kind == 3) return mix(options);
    options.order = static_cast<OrderKind>(kind);
    return load(options);
  }

  Tokens other;
};
inline const LoaderOptions kSmall{.batch_size = 3, .block_size = 10, .seed = 5};

}  // namespace lowtide
