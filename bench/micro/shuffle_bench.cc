// What an index of a shuffled order costs: the counter "an_index" is the time of one.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <vector>

#include "order/shuffle.h"

namespace lowtide {
namespace {

using Kernel = FeistelShuffle::Kernel;

void count_indices(benchmark::State& state, std::size_t batch) {
  state.counters["an_index"] =
      benchmark::Counter(static_cast<double>(batch), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void fill_batches(benchmark::State& state, const Order& order) {
  std::vector<std::uint64_t> out(static_cast<std::size_t>(state.range(1)));
  std::uint64_t first = 0;
  for (auto _ : state) {
    if (order.size() - first < out.size()) first = 0;
    order.fill(1, first, out);
    first += out.size();
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_indices(state, out.size());
}

void feistel(benchmark::State& state) {
  fill_batches(state, FeistelShuffle(static_cast<std::uint64_t>(state.range(0)), 7));
}
BENCHMARK(feistel)
    ->ArgNames({"size", "batch"})
    ->ArgsProduct({{3'000'000, 10'000'000'000}, {1, 12, 64, 4096}});

void feistel_portable(benchmark::State& state) {
  fill_batches(state, FeistelShuffle(static_cast<std::uint64_t>(state.range(0)), 7,
                                     FeistelShuffle::kRounds, Kernel::kPortable));
}
BENCHMARK(feistel_portable)
    ->ArgNames({"size", "batch"})
    ->ArgsProduct({{3'000'000, 10'000'000'000}, {4096}});

void table(benchmark::State& state) {
  fill_batches(state, TableShuffle(static_cast<std::uint64_t>(state.range(0)), 7));
}
BENCHMARK(table)->ArgNames({"size", "batch"})->ArgsProduct({{65'536}, {1, 4096}});

// The whole price of a new epoch of the largest table: dealing it, then copying it out.
void table_of_a_new_epoch(benchmark::State& state) {
  const TableShuffle order(kLargestTable, 7);
  std::vector<std::uint64_t> out(kLargestTable);
  std::uint64_t epoch = 0;
  for (auto _ : state) {
    order.fill(epoch++, 0, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_indices(state, out.size());
}
BENCHMARK(table_of_a_new_epoch);

void feistel_position_of(benchmark::State& state) {
  const FeistelShuffle order(static_cast<std::uint64_t>(state.range(0)), 7);
  std::uint64_t sample = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(order.position_of(1, sample));
    if (++sample == order.size()) sample = 0;
  }
  count_indices(state, 1);
}
BENCHMARK(feistel_position_of)->ArgName("size")->Arg(3'000'000)->Arg(10'000'000'000);

}  // namespace
}  // namespace lowtide

BENCHMARK_MAIN();
