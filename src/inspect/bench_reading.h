// bench_reading.h - reads an open file for a while, as its user would, and measures the rate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "inspect/stopwatch.h"
#include "lowtide/array.h"
#include "lowtide/loader.h"

namespace lowtide {

// Consecutive samples.
struct SampleRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// The result of reading for a while.
struct ReadRate {
  std::string how;
  double seconds = 0;
  std::uint64_t samples = 0, bytes = 0, bytes_read = 0, reads = 0;
  bool all = false;  // read_once: the end was reached
};

// The file opened in one way. Use it from one thread at a time.
class OpenSubject {
 public:
  virtual ~OpenSubject() = default;

  // Reads the samples of the range in random or file order, again and again until the time is up;
  // at least one batch. Throws what reading throws.
  [[nodiscard]] virtual ReadRate read_for(SampleRange range, bool random,
                                          const TimeLimit& limit) = 0;
  // Reads everything once in file order; stops when the time is up.
  [[nodiscard]] virtual ReadRate read_once(const TimeLimit& limit) = 0;
};

// Batches of rows.
[[nodiscard]] std::unique_ptr<OpenSubject> read_rows(Array array, std::uint64_t batch_size);

// Windows of kBenchBlockSize + 1 tokens through a Loader. Random windows of a part of the file go
// through Tokens::windows, because a Loader cannot be limited to a part. `windows`: their number.
inline constexpr std::uint64_t kBenchBlockSize = 1024;
[[nodiscard]] std::unique_ptr<OpenSubject> read_windows(Tokens tokens, std::uint64_t batch_size,
                                                        std::uint64_t windows);

}  // namespace lowtide
