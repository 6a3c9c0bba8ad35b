#include "inspect/check.h"

#include <chrono>
#include <stdexcept>

#include "inspect/info.h"
#include "lowtide/error.h"
#include "os/file.h"

namespace lowtide {
namespace {

CheckResult check_opened(const OpenedFile& opened, const std::string& path,
                         const CheckOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  CheckResult result;
  result.info = info_of_opened(opened, path, options.file);
  if (const Array* const array = std::get_if<Array>(&opened)) {
    if (options.vocab || options.eot) {
      throw std::invalid_argument("vocab and eot apply to tokens, but " + path + " is an array");
    }
    check_array(*array, options, &result);
  } else {
    if (options.count_nan) {
      throw std::invalid_argument("nan applies to arrays, but " + path + " holds tokens");
    }
    check_tokens(std::get<Tokens>(opened), options, &result);
  }
  // If the file changed while it was read, the bytes checked never existed together.
  for (const FileInfo& file : result.info.files) {
    const std::uint64_t now_bytes = File(file.path).shard().size_bytes;
    if (now_bytes == file.bytes) continue;
    throw FormatError(file.path + ": the size changed during the check: expected " +
                      std::to_string(file.bytes) + " bytes, found " + std::to_string(now_bytes));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

CheckResult check_files(std::span<const std::string> paths, bool expand,
                        const CheckOptions& options) {
  ReadOptions read = kNoReads;
  // An array is opened again file by file; tokens are read through this.
  if (kind_of(paths, expand, options.file) == FileKind::tokens) {
    read = {.memory_bytes = options.memory_bytes, .cache = CacheMode::drop};
  }
  return check_opened(open_file(paths, expand, options.file, read), paths.front(), options);
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
