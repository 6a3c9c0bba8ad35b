// Reads every row of a matrix once, in shuffled batches, in flat memory, and prints the mean of its
// first column.
//
//   shuffled_rows m.npy                          a .npy file
//   shuffled_rows m.f32 3000000 162              a raw float32 file of 3000000 x 162
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lowtide/array.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::cerr << "usage: shuffled_rows FILE.npy | shuffled_rows FILE ROWS COLUMNS\n";
    return 2;
  }
  try {
    lowtide::OpenOptions options{.read = {.memory_bytes = 64 << 20}};
    if (argc == 4) {
      options.dtype = "float32";
      options.shape = std::vector<std::uint64_t>{std::stoull(argv[2]), std::stoull(argv[3])};
    }
    const lowtide::Array array = lowtide::Array::open(argv[1], options);
    if (!(array.dtype() == lowtide::DType::parse("float32"))) {
      std::cerr << argv[1] << ": expected float32, found " << array.dtype().descr() << "\n";
      return 1;
    }

    double sum = 0;
    std::uint64_t rows = 0;
    lowtide::Batches batches = array.batches({.batch_size = 4096, .seed = 1});
    for (const lowtide::Batch& batch : batches) {
      const auto values = batch.as<float>();
      const std::size_t columns = values.size() / batch.rows();
      for (std::size_t i = 0; i < values.size(); i += columns) sum += values[i];
      rows += batch.rows();
    }

    const lowtide::Stats stats = array.stats();
    std::cout << "mean " << (rows == 0 ? 0 : sum / static_cast<double>(rows)) << " over " << rows
              << " rows, engine " << stats.engine << " (" << stats.engine_reason << ")\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
