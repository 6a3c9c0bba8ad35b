#include "inspect/check.h"

#include <chrono>
#include <stdexcept>

#include "inspect/info.h"
#include "lowtide/error.h"
#include "os/file.h"

namespace lowtide {
namespace {

using Clock = std::chrono::steady_clock;

void refuse_token_options(const CheckOptions& options, const std::string& path) {
  if (!options.vocab && !options.eot) return;
  throw std::invalid_argument("vocab and eot apply to tokens, but " + path + " is an array");
}

// If the file changed while it was read, the bytes checked never existed together.
void check_sizes(const Info& found) {
  for (const FileInfo& file : found.files) {
    const std::uint64_t now_bytes = File(file.path).shard().size_bytes;
    if (now_bytes == file.bytes) continue;
    throw FormatError(file.path + ": the size changed during the check: expected " +
                      std::to_string(file.bytes) + " bytes, found " + std::to_string(now_bytes));
  }
}

void check_opened(const OpenedFile& opened, const std::string& path, const CheckOptions& options,
                  CheckResult* result) {
  result->info = info_of_opened(opened, path, options.file);
  if (const Array* const array = std::get_if<Array>(&opened)) {
    refuse_token_options(options, path);
    check_array(*array, options, result);
  } else {
    if (options.count_nan) {
      throw std::invalid_argument("nan applies to arrays, but " + path + " holds tokens");
    }
    check_tokens(std::get<Tokens>(opened), options, result);
  }
}

CheckResult check_files(std::span<const std::string> paths, bool expand,
                        const CheckOptions& options) {
  const Clock::time_point start = Clock::now();
  CheckResult result;
  if (is_sparse_folder(paths, options.file)) {
    throw FormatError(paths.front() +
                      ": expected an array or tokens, found a sparse matrix: check it in Python, "
                      "with lowtide.check");
  }
  if (auto several = info_of_several(paths, expand, options.file)) {
    result.info = *std::move(several);
    refuse_token_options(options, paths.front());
    check_arrays(paths, expand, options, &result);
  } else {
    ReadOptions read = kNoReads;
    // An array is opened again file by file; tokens are read through this.
    if (kind_of(paths, expand, options.file) == FileKind::tokens) {
      read = {.memory_bytes = options.memory_bytes, .cache = CacheMode::drop};
    }
    check_opened(open_file(paths, expand, options.file, read), paths.front(), options, &result);
  }
  check_sizes(result.info);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace

CheckResult check(const std::string& path, const CheckOptions& options) {
  return check_files({&path, 1}, true, options);
}

CheckResult check(std::span<const std::string> paths, const CheckOptions& options) {
  if (paths.empty()) throw std::invalid_argument("check: the list of files is empty");
  return check_files(paths, false, options);
}

}  // namespace lowtide
