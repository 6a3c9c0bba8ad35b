#include "lowtide/command/cache.h"

#include <algorithm>
#include <memory>

#include "http/local_path.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/residency.h"
#include "system/limits.h"
#include "system/mappers.h"

namespace lowtide {
namespace {

// At least as large as any folio and a multiple of the largest, so that no folio spans two slabs:
// the kernel drops a folio only when a request covers all of it.
constexpr std::uint64_t kSlabBytes = 64ULL << 20;
// No more than any disk reads ahead at once (read_ahead_kb is rarely below 128), because the kernel
// silently truncates longer read-ahead hints.
constexpr std::uint64_t kSliceBytes = 128ULL << 10;
constexpr std::uint64_t kAheadBytes = 16ULL << 20;
constexpr std::uint64_t kReadBytes = 1ULL << 20;

std::optional<std::uint64_t> cached_now(const File& file, std::string* why) {
  const auto found = residency(file, 0, 0, why);
  if (!found) return std::nullopt;
  return found->cached_bytes;
}

// Returns the offset where it was stopped; the size of the file if it was not stopped.
std::uint64_t drop_pages(const File& file, const CacheProgress& progress) {
  const std::uint64_t all = file.shard().size_bytes;
  for (std::uint64_t at = 0; at < all; at += kSlabBytes) {
    const std::uint64_t size = std::min(kSlabBytes, all - at);
    // The last request extends past the end of the file, because a partial last page would stay.
    const int err = file.advise(Advice::dont_need, at, at + size == all ? 0 : size);
    if (err != 0) throw IoError(err, "fadvise", file.shard().path, at);
    if (progress && !progress(at + size, all)) return at + size;
  }
  return all;
}

CacheChange change_of(const File& file, std::string* why) {
  CacheChange change;
  change.path = file.shard().path;
  change.bytes = file.shard().size_bytes;
  change.before_bytes = cached_now(file, why);
  return change;
}

std::string mapper_words(const Mapper& mapper) {
  std::string text = std::string(mapper.locked ? "locked" : "mapped") + " by process " +
                     std::to_string(mapper.pid);
  return mapper.program.empty() ? text : text + " (" + mapper.program + ")";
}

// The most likely reason first; never empty.
std::vector<std::string> why_pages_stay(const File& file) {
  std::vector<std::string> reasons;
  if (lives_in_memory(file)) {
    return {
        "the file is on a file system that lives in memory (tmpfs), so there is no disk copy to "
        "fall back on"};
  }
  const Mappers mappers = mappers_of(file);
  for (const Mapper& mapper : mappers.found) reasons.push_back(mapper_words(mapper));
  const auto state = residency(file);
  if (state && state->writeback_bytes > 0) {
    reasons.push_back(format_bytes(state->writeback_bytes) + " is still being written to disk");
  }
  if (state && state->dirty_bytes > state->writeback_bytes) {
    reasons.push_back(format_bytes(state->dirty_bytes - state->writeback_bytes) +
                      " is dirty again: a program is writing to the file");
  }
  if (reasons.empty() && mappers.hidden > 0) {
    reasons.push_back("possibly mapped by one of " + std::to_string(mappers.hidden) +
                      " processes of other users, which cannot be inspected; try as root");
  }
  if (reasons.empty()) {
    reasons.push_back(
        "in use by the kernel: a read is in progress, or the pages belong to a larger folio");
  }
  return reasons;
}

// Returns the offset where it was stopped, like drop_pages.
std::uint64_t read_all(const File& file, const CacheProgress& progress) {
  const std::uint64_t all = file.shard().size_bytes;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kReadBytes);
  std::uint64_t asked = 0;
  for (std::uint64_t at = 0; at < all;) {
    for (; asked < std::min(all, at + kAheadBytes); asked += kSliceBytes) {
      (void)file.advise(Advice::will_need, asked,
                        kSliceBytes);  // only a hint; the read below fetches the bytes in any case
    }
    const std::uint64_t size = std::min(kReadBytes, all - at);
    file.read_exact(at, {buffer.get(), size});
    at += size;
    if (progress && !progress(at, all)) return at;
  }
  return all;
}

std::string stopped_words(std::uint64_t at_bytes, std::uint64_t all_bytes) {
  return "stopped after " + format_bytes(at_bytes) + " of " + format_bytes(all_bytes);
}

std::string too_large(std::uint64_t missing_bytes, std::uint64_t available_bytes) {
  return format_bytes(missing_bytes) + " must be loaded but only " + format_bytes(available_bytes) +
         " of memory is available, so the first pages will be evicted before the last are loaded";
}

std::vector<std::string> why_not_all_came(std::uint64_t missing_bytes) {
  std::string reason = format_bytes(missing_bytes) + " was evicted again";
  if (const auto available = available_bytes()) {
    reason += "; " + format_bytes(*available) + " of memory is available";
  }
  if (const auto limit = cgroup_limit()) {
    reason += "; the memory cgroup is limited to " + format_bytes(limit->bytes);
  }
  return {reason};
}

}  // namespace

CacheState cache_state(const std::string& path, std::uint64_t parts) {
  const File file(path);
  CacheState state;
  state.path = path;
  state.bytes = file.shard().size_bytes;
  const auto all = residency(file, 0, 0, &state.unknown);
  if (!all) return state;
  state.cached_bytes = all->cached_bytes;
  state.dirty_bytes = all->dirty_bytes;
  const std::uint64_t pages = (state.bytes + page_bytes() - 1) / page_bytes();
  const std::uint64_t count = std::min(parts, pages);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = pages * i / count * page_bytes();
    const std::uint64_t last = std::min(pages * (i + 1) / count * page_bytes(), state.bytes);
    const auto part = residency(file, first, last - first);
    if (!part) break;
    state.parts.push_back(static_cast<double>(part->cached_bytes) /
                          static_cast<double>(last - first));
  }
  return state;
}

CacheChange evict_file(const std::string& path, const CacheProgress& progress) {
  const File file(path);
  std::string unknown;
  CacheChange change = change_of(file, &unknown);
  if (const int err = write_back(file); err != 0) throw IoError(err, "fdatasync", path);
  const std::uint64_t dropped = drop_pages(file, progress);
  change.after_bytes = cached_now(file, &unknown);
  if (dropped == change.bytes && change.after_bytes.value_or(1) > 0) {
    (void)drop_pages(file, {});  // the first attempt misses read-ahead that was in flight
    change.after_bytes = cached_now(file, &unknown);
  }
  if (dropped < change.bytes && change.after_bytes != 0) {
    change.reasons = {stopped_words(dropped, change.bytes)};
  } else if (!change.after_bytes) {
    change.reasons = {"eviction was requested, but its effect is unknown: " + unknown};
  } else if (*change.after_bytes > 0) {
    change.reasons = why_pages_stay(file);
  }
  change.done = change.after_bytes == 0;
  return change;
}

CacheChange warm_file(const std::string& path, const CacheProgress& progress) {
  const File file(path);
  std::string unknown;
  CacheChange change = change_of(file, &unknown);
  const std::uint64_t missing = change.bytes - change.before_bytes.value_or(0);
  if (const auto available = available_bytes(); available && missing > *available) {
    change.warnings.push_back(too_large(missing, *available));
  }
  const std::uint64_t came = read_all(file, progress);
  change.after_bytes = cached_now(file, &unknown);
  if (came < change.bytes && change.after_bytes != change.bytes) {
    change.reasons = {stopped_words(came, change.bytes)};
  } else if (!change.after_bytes) {
    change.reasons = {"the file was read, but whether it stayed cached is unknown: " + unknown};
  } else if (*change.after_bytes < change.bytes) {
    change.reasons = why_not_all_came(change.bytes - *change.after_bytes);
  }
  change.done = change.after_bytes == change.bytes;
  return change;
}

std::vector<std::string> files_of(const std::string& path) {
  require_local(path, kExaminesLocal);
  if (!is_folder(path)) return expand_path(path);
  std::vector<std::string> files;
  for (const std::string& name : list_folder(path)) {
    const std::string inside = path.ends_with('/') ? path + name : path + "/" + name;
    if (!is_folder(inside)) files.push_back(inside);
  }
  return files;
}

}  // namespace lowtide
