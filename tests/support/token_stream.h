// token_stream.h - a small stream of tokens on disk and in memory, and windows of it that are
// checked token by token.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "lowtide/loader.h"
#include "os/temp_folder.h"
#include "support/token_files.h"

namespace lowtide {

// Tokens of which each tells its place.
inline std::vector<std::uint16_t> made_tokens(std::size_t count, std::uint32_t seed = 0) {
  std::vector<std::uint16_t> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::uint16_t>((i * 40503 + seed * 977 + 11) % 50257));
  }
  return tokens;
}

// Of a batch of int64.
inline std::uint64_t block_size(const Batch& batch) {
  return batch.as<std::int64_t>(kX).size() / batch.rows();
}

struct TokenRig {
  explicit TokenRig(std::size_t count, std::uint64_t memory_bytes = 4 << 20)
      : held(made_tokens(count)), budget_bytes(memory_bytes), tokens(open("train.bin", held)) {}

  [[nodiscard]] Tokens open(const std::string& name,
                            const std::vector<std::uint16_t>& values) const {
    return Tokens::open(folder.write(name, little_endian(values)),
                        {.dtype = "uint16", .read = {.memory_bytes = budget_bytes}});
  }
  // Row `row` of a batch of int64 is the window that starts at this token.
  void expect_window(const Batch& batch, std::uint64_t row, std::uint64_t start) const {
    const std::uint64_t block = block_size(batch);
    const auto x = batch.as<std::int64_t>(kX).subspan(row * block, block);
    const auto y = batch.as<std::int64_t>(kY).subspan(row * block, block);
    for (std::uint64_t i = 0; i < block; ++i) {
      ASSERT_EQ(x[i], held[start + i]) << "row " << row << ", token " << i;
      ASSERT_EQ(y[i], held[start + i + 1]) << "row " << row << ", token " << i;
    }
  }
  void expect_windows(const Batch& batch) const {
    for (std::uint64_t row = 0; row < batch.rows(); ++row) {
      expect_window(batch, row, batch.index()[row] * block_size(batch));
    }
  }

  TempFolder folder;
  std::vector<std::uint16_t> held;
  std::uint64_t budget_bytes;
  Tokens tokens;
};

// Epoch, step, windows and x of a batch.
using Heard = std::tuple<std::uint64_t, std::uint64_t, std::vector<std::uint64_t>, std::string>;
inline Heard hear(Loader& loader) {
  const auto batch = loader.next();
  if (!batch) return {};
  const std::span<std::byte> x = batch.column(kX);
  return {batch.epoch(),
          batch.step(),
          {batch.index().begin(), batch.index().end()},
          std::string(reinterpret_cast<const char*>(x.data()), x.size())};
}

}  // namespace lowtide
