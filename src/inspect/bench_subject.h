// bench_subject.h - the file to measure, read as its user would read it: batches of rows, windows
// of tokens, or blocks of bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "inspect/bench_device.h"
#include "inspect/bench_reading.h"
#include "lowtide/array.h"
#include "lowtide/command/bench.h"

namespace lowtide {

class Subject {
 public:
  virtual ~Subject() = default;

  // Opens it with a budget of memory_bytes. Throws what Array::open and Tokens::open throw.
  [[nodiscard]] virtual std::unique_ptr<OpenSubject> open(const ReadOptions& how) const = 0;

  std::string path;  // as given
  std::string
      data_path;  // the file with the samples: for Megatron the .bin, even if the .idx was named
  std::string format;  // as in BenchReport
  std::string unit;
  SampleGrid grid;
  std::uint64_t batch_size = 0;
  std::uint64_t memory_bytes = 0;
  std::string note;  // what the reader should know about it; empty: nothing
};

// Throws FormatError for a file that is empty, has fewer than two samples or contradicts
// options.file; IoError if the path is not a plain file; std::invalid_argument for options that
// contradict each other.
[[nodiscard]] std::unique_ptr<Subject> make_subject(const std::string& path,
                                                    const BenchOptions& options);

}  // namespace lowtide
