// A program that knows lowtide only from its installed headers: writes a small matrix, reads it
// back by row and in shuffled batches. Exit 0 when every row came once and the library is of the
// version that is the argument.
#include <lowtide/array.h>
#include <lowtide/version.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <span>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
  constexpr std::uint32_t kRows = 1000;
  const char* path = "consumer.u32";
  {
    std::ofstream file(path, std::ios::binary);
    for (std::uint32_t row = 0; row < kRows; ++row) {
      file.write(reinterpret_cast<const char*>(&row), sizeof row);
    }
  }

  const auto array =
      lowtide::Array::open(path, {.dtype = "uint32", .read = {.memory_bytes = 4 << 20}});
  std::uint32_t last = 0;
  array.read(kRows - 1, 1, std::as_writable_bytes(std::span(&last, 1)));

  std::set<std::uint32_t> seen;
  auto batches = array.batches({.batch_size = 64});
  while (const lowtide::Batch batch = batches.next()) {
    const auto values = batch.as<std::uint32_t>();
    seen.insert(values.begin(), values.end());
  }
  std::remove(path);

  const bool whole = last == kRows - 1 && seen.size() == kRows && *seen.rbegin() == kRows - 1;
  if (argc != 2 || std::string_view(argv[1]) != lowtide::version()) {
    std::printf("the library is version %s\n", lowtide::version());
    return 1;
  }
  std::printf("%s\n", whole ? "every row came once" : "rows are missing");
  return whole ? 0 : 1;
}
