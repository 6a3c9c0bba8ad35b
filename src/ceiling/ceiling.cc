#include "lowtide/ceiling.h"

#include <cerrno>
#include <stdexcept>

#include "ceiling/registry.h"
#include "ceiling/trimmed_map.h"
#include "system/limits.h"
#include "system/mapped_pages.h"

namespace lowtide {
namespace {

std::unique_ptr<DropBehind> drop_of(const CeilingOptions& options, std::uint64_t size_bytes) {
  if (options.drop_path.empty()) return nullptr;
  return std::make_unique<DropBehind>(options.drop_path, options.file_offset_bytes, size_bytes);
}

[[noreturn]] void throw_refused(int err, const std::string& path) {
  throw IoError(err, "madvise(MADV_DONTNEED)", path, std::nullopt,
                err == EINVAL ? "pages of this map are locked (mlock): unlock them first" : "");
}

std::uint64_t counted(PageCounter& counter, const void* address, std::uint64_t size_bytes) {
  const std::optional<std::uint64_t> bytes = counter.entered_bytes(address, size_bytes);
  if (!bytes) {
    throw IoError(counter.err() != 0 ? counter.err() : EIO, "read", "/proc/self/pagemap",
                  std::nullopt, "without it, the number of released bytes is unknown");
  }
  return *bytes;
}

}  // namespace

class Ceiling::Impl {
 public:
  Impl(void* address, std::uint64_t size_bytes, const CeilingOptions& options)
      : map(address, size_bytes, options.file_offset_bytes,
            options.memory_bytes != 0 ? options.memory_bytes : default_memory_bytes(SystemRoot{}),
            drop_of(options, size_bytes)) {}

  TrimmedMap map;
  bool open = true;  // guarded by the Registry's lock
  bool listed = false;
};

Ceiling::Ceiling(void* address, std::uint64_t size_bytes, const CeilingOptions& options)
    : impl_(std::make_unique<Impl>(address, size_bytes, options)) {
  if (impl_->map.fits()) return;  // it can never exceed the limit, so no thread needs to watch it
  Registry::of_process().add(impl_->map);
  impl_->listed = true;
}

Ceiling::~Ceiling() {
  close();
}

void Ceiling::close() noexcept {
  Registry& registry = Registry::of_process();
  {
    const MutexLock lock(registry.mutex());
    if (!impl_->open) return;
    impl_->open = false;
    // Once the map is gone, it is no longer known which pages it brought into the page cache.
    if (impl_->map.drops()) (void)impl_->map.trim();
  }
  registry.remove(impl_->map);
}

void Ceiling::touch(const void* at, std::uint64_t size_bytes) noexcept {
  if (!impl_->listed) return;
  const MutexLock lock(Registry::of_process().mutex());
  if (impl_->open) impl_->map.touch(at, size_bytes);
}

void Ceiling::touch_anywhere(std::uint64_t touches) noexcept {
  if (!impl_->listed) return;
  const MutexLock lock(Registry::of_process().mutex());
  if (impl_->open) impl_->map.touch_anywhere(touches);
}

void Ceiling::lend(std::uint64_t bytes) noexcept {
  const MutexLock lock(Registry::of_process().mutex());
  if (impl_->listed) impl_->map.lend(bytes);
}

int Ceiling::trim() noexcept {
  const MutexLock lock(Registry::of_process().mutex());
  return impl_->open ? impl_->map.trim() : 0;
}

bool Ceiling::limited() const noexcept {
  return impl_->listed;
}

std::uint64_t Ceiling::limit_bytes() const noexcept {
  const MutexLock lock(Registry::of_process().mutex());
  return impl_->map.limit_bytes();
}

CeilingStats Ceiling::stats() const {
  const MutexLock lock(Registry::of_process().mutex());
  const TrimmedMap& map = impl_->map;
  return {.memory_bytes = map.limit_bytes(),
          .entered_bytes = impl_->open ? map.entered_bytes() : 0,
          .trims = map.trims(),
          .refused = map.refused()};
}

std::uint64_t release_map(void* address, std::uint64_t size_bytes, bool leave_dumps,
                          const std::string& path) {
  const std::optional<bool> loses = may_lose_writes(address, size_bytes);
  if (!loses) throw IoError(EIO, "read", "/proc/self/maps", std::nullopt, "is /proc mounted?");
  if (*loses) {
    throw std::invalid_argument((path.empty() ? "release" : path) +
                                ": this map is private and writable (mode \"c\"), or it was: "
                                "releasing its pages would discard the data written to them");
  }
  // madvise does not report how much it released, so the pages are counted before and after.
  PageCounter counter;
  const std::uint64_t before = counted(counter, address, size_bytes);
  if (leave_dumps) {
    const int err = leave_out_of_dumps(address, size_bytes);
    if (err != 0) throw IoError(err, "madvise(MADV_DONTDUMP)", path);
  }
  const int err = give_back_pages(address, size_bytes);
  if (err != 0) throw_refused(err, path);
  const std::uint64_t after = counted(counter, address, size_bytes);
  return before > after ? before - after : 0;
}

void stop_trimming() noexcept {
  Registry::of_process().stop();
}

void resume_trimming() noexcept {
  Registry::of_process().resume();
}

}  // namespace lowtide
