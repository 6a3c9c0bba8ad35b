// bench_reading.h - an open file, read for a while as its user would read it, and what that gave.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "inspect/stopwatch.h"
#include "lowtide/array.h"
#include "lowtide/tokens.h"

namespace lowtide {

// Some samples in a row.
struct SampleRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// What came of reading for a while.
struct ReadRate {
  std::string how;
  double seconds = 0;
  std::uint64_t samples = 0, bytes = 0, bytes_read = 0, reads = 0;
  bool all = false;  // of read_once: the end was reached
};

// The file opened in one way. Not for two threads at once.
class OpenSubject {
 public:
  virtual ~OpenSubject() = default;

  // Samples of the range in a drawn order, or as they lie, over and over until the time is up; at
  // least one batch. Throws what reading throws.
  [[nodiscard]] virtual ReadRate read_for(SampleRange range, bool random,
                                          const TimeLimit& limit) = 0;
  // Everything once, as it lies, given up when the time is up.
  [[nodiscard]] virtual ReadRate read_once(const TimeLimit& limit) = 0;
};

// Batches of rows.
[[nodiscard]] std::unique_ptr<OpenSubject> read_rows(Array array, std::uint64_t batch_size);

// Windows of kBenchBlockSize + 1 tokens through a Loader; those of a part of the file in drawn
// order, which a Loader does not have, by Tokens::windows. `windows`: how many there are.
inline constexpr std::uint64_t kBenchBlockSize = 1024;
[[nodiscard]] std::unique_ptr<OpenSubject> read_windows(Tokens tokens, std::uint64_t batch_size,
                                                        std::uint64_t windows);

}  // namespace lowtide
