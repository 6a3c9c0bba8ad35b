// What it costs to make rows of a sparse matrix dense: the counter "a_row" is the time of one.
//
// Rows are those of the benchmark `sparse`: 500 to 1,499 values in 20,000 columns, sorted. There
// are as many batches as fill 160 MB, so they are not in the processor's cache.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "dataset/sparse.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kColumns = 20'000;
constexpr std::size_t kBatchRows = 256, kBatches = 78;

template <typename Index>
struct Rows {
  std::vector<float> values;
  std::vector<Index> indices;
  std::vector<std::size_t> starts{0};

  explicit Rows(std::size_t mean) {
    std::mt19937 random(1);
    for (std::size_t row = 0; row < kBatches * kBatchRows; ++row) {
      const std::size_t count = mean / 2 + random() % mean, step = kColumns / count;
      for (std::size_t i = 0; i < count; ++i) {
        values.push_back(static_cast<float>(random() % 15));
        indices.push_back(static_cast<Index>(i * step + random() % step));
      }
      starts.push_back(values.size());
    }
  }
};

std::optional<std::vector<std::uint64_t>> picked_columns(std::size_t count) {
  if (count == 0) return std::nullopt;
  std::vector<std::uint64_t> picked;
  std::mt19937 random(2);
  for (std::uint64_t column = 0; column < kColumns; ++column) {
    if (random() % (kColumns - column) < count - picked.size()) picked.push_back(column);
  }
  return picked;
}

template <typename Index>
void fill_batches(benchmark::State& state, TokenType type) {
  const Rows<Index> rows(static_cast<std::size_t>(state.range(1)));
  const DenseRows dense(DType::parse("<f4"), type, kColumns, DenseType::f32,
                        picked_columns(static_cast<std::size_t>(state.range(0))));
  std::vector<std::byte> out(kBatchRows * dense.row_bytes());
  DenseRows::Scratch scratch;
  std::size_t batch = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBatchRows; ++i) {
      const std::size_t start = rows.starts[batch * kBatchRows + i];
      const std::size_t count = rows.starts[batch * kBatchRows + i + 1] - start;
      const bool right = dense.fill(reinterpret_cast<const std::byte*>(rows.values.data() + start),
                                    reinterpret_cast<const std::byte*>(rows.indices.data() + start),
                                    count, out.data() + i * dense.row_bytes(), scratch);
      if (!right) state.SkipWithError("an index is too large");
    }
    batch = (batch + 1) % kBatches;
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.counters["a_row"] = benchmark::Counter(
      kBatchRows, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void dense_int32(benchmark::State& state) {
  fill_batches<std::int32_t>(state, TokenType::i32);
}
BENCHMARK(dense_int32)
    ->ArgNames({"picked", "values"})
    ->ArgsProduct({{0, 200, 2000, 10'000}, {1000}})
    ->ArgsProduct({{2000}, {100, 300, 3000}});

void dense_int64(benchmark::State& state) {
  fill_batches<std::int64_t>(state, TokenType::i64);
}
BENCHMARK(dense_int64)->ArgNames({"picked", "values"})->Args({2000, 1000});

}  // namespace
}  // namespace lowtide

BENCHMARK_MAIN();
