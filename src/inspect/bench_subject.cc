#include "inspect/bench_subject.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "face/array_impl.h"
#include "format/registry.h"
#include "http/local_path.h"
#include "inspect/bench_reading.h"
#include "inspect/info.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "lowtide/loader.h"
#include "os/file.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kRowBatch = 4096;
constexpr std::uint64_t kWindowBatch = 12;
constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kBatchShare = 16;  // one batch takes at most this fraction of the budget

class RowsSubject final : public Subject {
 public:
  std::unique_ptr<OpenSubject> open(const ReadOptions& how) const override {
    OpenOptions options = given;
    options.read = how;
    options.read.memory_bytes = memory_bytes;
    return read_rows(Array::open(path, options), batch_size);
  }

  OpenOptions given;  // describes a file without a header
};

class WindowsSubject final : public Subject {
 public:
  std::unique_ptr<OpenSubject> open(const ReadOptions& how) const override {
    TokensOptions options = given;
    options.read = how;
    options.read.memory_bytes = memory_bytes;
    return read_windows(Tokens::open(path, options), batch_size, grid.count);
  }

  TokensOptions given;
};

std::uint64_t batch_of(const BenchOptions& options, const Subject& subject, std::uint64_t usual) {
  if (options.batch_size != 0) return std::min(options.batch_size, subject.grid.count);
  const std::uint64_t most = subject.memory_bytes / kBatchShare / subject.grid.size_bytes;
  return std::clamp<std::uint64_t>(most, 1, std::min(usual, subject.grid.count));
}

std::unique_ptr<Subject> of_array(const Array& array, const InfoOptions& given) {
  auto subject = std::make_unique<RowsSubject>();
  subject->format = array.format();
  subject->unit = "row";
  subject->data_path = array.paths().front();
  subject->given.dtype = given.dtype;
  subject->given.shape = given.shape;
  subject->given.offset_bytes = given.offset_bytes;
  subject->given.fortran_order = given.fortran_order;
  subject->given.key = given.key;
  const Rows& rows = *Array::Impl::of(array)->rows;
  const std::uint64_t gap_bytes = rows.row_prefix().size();
  subject->grid = {rows.first_offset_bytes(), array.row_bytes() + gap_bytes, array.row_bytes(),
                   array.rows()};
  return subject;
}

std::unique_ptr<Subject> of_tokens(const Tokens& tokens, const InfoOptions& given) {
  auto subject = std::make_unique<WindowsSubject>();
  subject->given.dtype = given.dtype;
  subject->given.format = given.format;
  subject->format = tokens.format();
  subject->unit = "window";
  subject->data_path = tokens.paths().front();
  const std::uint64_t token_bytes = tokens.dtype().itemsize_bytes;
  const std::uint64_t file_bytes = File(subject->data_path).shard().size_bytes;
  const std::uint64_t data_bytes = std::min(file_bytes, tokens.size() * token_bytes);
  subject->grid = {file_bytes - data_bytes, kBenchBlockSize * token_bytes,
                   (kBenchBlockSize + 1) * token_bytes,
                   tokens.size() == 0 ? 0 : (tokens.size() - 1) / kBenchBlockSize};
  return subject;
}

std::unique_ptr<Subject> of_bytes(const Shard& file, std::uint64_t row_bytes, std::string note) {
  auto subject = std::make_unique<RowsSubject>();
  subject->format = raw::kWord;
  subject->unit = row_bytes == 0 ? "block" : "row";
  subject->data_path = file.path;
  const std::uint64_t size = row_bytes == 0 ? kBlockBytes : row_bytes;
  subject->grid = {0, size, size, file.size_bytes / size};
  subject->given.dtype = "uint8";
  subject->given.shape = std::vector<std::uint64_t>{file.size_bytes / size, size};
  subject->given.headerless = true;
  subject->note = std::move(note);
  return subject;
}

bool says_what_it_is(const InfoOptions& given) {
  return given.kind || given.dtype || given.shape || given.offset_bytes || given.fortran_order ||
         given.format || given.key;
}

std::unique_ptr<Subject> of_file(const Shard& file, const InfoOptions& given) try {
  const OpenedFile opened = open_file({&file.path, 1}, false, given, kNoReads);
  if (const auto* tokens = std::get_if<Tokens>(&opened)) return of_tokens(*tokens, given);
  const auto& array = std::get<Array>(opened);
  if (array.fortran_order()) {  // no row is contiguous in the file
    return of_bytes(file, 0, "Fortran order: the file is read in blocks of bytes, not row by row");
  }
  if (array.rows() == 0 || array.row_bytes() == 0) {
    return of_bytes(file, 0, "an array without elements: the file is read in blocks of bytes");
  }
  return of_array(array, given);
} catch (const FormatError&) {
  if (says_what_it_is(given)) throw;
  return of_bytes(file, 0, "not a known format: the file is read in blocks of bytes");
}

}  // namespace

std::unique_ptr<Subject> make_subject(const std::string& path, const BenchOptions& options) {
  constexpr std::uint64_t kLeastBytes = 1 << 20;
  if (options.row_bytes != 0 && says_what_it_is(options.file)) {
    throw std::invalid_argument(
        "row_bytes cannot be combined with a dtype or a shape: give one of them");
  }
  require_local(path, kExaminesLocal);
  const Shard file = File(path).shard();
  if (file.size_bytes == 0) throw FormatError(path + ": the file is empty and cannot be measured");
  if (file.size_bytes < kLeastBytes) {
    throw FormatError(path + ": too small to measure: expected at least " +
                      format_bytes(kLeastBytes) + ", found " + format_bytes(file.size_bytes));
  }
  std::unique_ptr<Subject> subject =
      options.row_bytes != 0 ? of_bytes(file, options.row_bytes, "") : of_file(file, options.file);
  if (subject->grid.count < 2) {
    throw FormatError(path + ": too small to measure: expected at least two " + subject->unit +
                      "s of " + format_bytes(subject->grid.size_bytes) + ", found " +
                      std::to_string(subject->grid.count));
  }
  subject->path = path;
  subject->memory_bytes = options.memory_bytes != 0 ? options.memory_bytes : default_memory_bytes();
  subject->batch_size =
      batch_of(options, *subject, subject->unit == "window" ? kWindowBatch : kRowBatch);
  return subject;
}

}  // namespace lowtide
