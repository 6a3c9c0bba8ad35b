#include "engine/outcome.h"

#include "lowtide/error.h"
#include "os/quiet_thread.h"

namespace lowtide {

void throw_outcome(const Outcome& outcome, const Read& read, const std::string& path,
                   const std::string& when) {
  const std::string at_step = when.empty() ? "" : " (" + when + ")";
  if (outcome.err == 0) {
    throw FormatError(path + ": the file was truncated since it was opened: expected " +
                      std::to_string(read.from.size_bytes) + " bytes at byte " +
                      std::to_string(read.from.offset_bytes) + ", but it ends at byte " +
                      std::to_string(outcome.found_bytes) + at_step);
  }
  if (outcome.no_thread) {
    throw IoError(outcome.err, "cannot start a thread to read", path, std::nullopt,
                  kNoThreadHint + at_step);
  }
  if (!outcome.http.ok()) {
    const std::uint64_t last = read.from.end_bytes() - 1;
    throw IoError(outcome.err, "read", path, std::nullopt,
                  "bytes " + std::to_string(read.from.offset_bytes) + "-" + std::to_string(last) +
                      ": " + describe(outcome.http) + at_step);
  }
  throw IoError(outcome.err, "read", path, read.from.offset_bytes, when);
}

}  // namespace lowtide
