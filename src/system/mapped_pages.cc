#include "system/mapped_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "core/checked.h"
#include "os/residency.h"
#include "os/sys.h"
#include "system/pagemap_scan.h"
#include "system/text_file.h"

namespace lowtide {
namespace {

int open_again(const char* path) noexcept {
  int fd = -1;
  do {
    fd = sys::table.open(path, O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

ssize_t pread_again(int fd, void* into, std::size_t size, std::uint64_t offset) noexcept {
  ssize_t got = -1;
  do {
    got = sys::table.pread(fd, into, size, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  return got;
}

std::uint64_t address_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

int advise(void* address, std::uint64_t size_bytes, int advice) noexcept {
  int done = -1;
  do {
    done = sys::table.madvise(address, static_cast<std::size_t>(size_bytes), advice);
  } while (done != 0 && errno == EINTR);
  return done == 0 ? 0 : errno;
}

}  // namespace

std::optional<std::uint64_t> resident_file_bytes() noexcept {
  const int fd = open_again("/proc/self/statm");
  if (fd < 0) return std::nullopt;
  std::array<char, 256> text{};
  const ssize_t got = pread_again(fd, text.data(), text.size(), 0);
  sys::table.close(fd);
  if (got <= 0) return std::nullopt;
  // The third number: "size resident shared text lib data dirty", in pages.
  const char* at = text.data();
  const char* const end = at + got;
  std::uint64_t pages = 0;
  for (int field = 0; field < 3; ++field) {
    at = std::find_if(at, end, [](char c) { return c != ' '; });
    const auto [next, error] = std::from_chars(at, end, pages);
    if (error != std::errc()) return std::nullopt;
    at = next;
  }
  return pages * page_bytes();
}

PageCounter::PageCounter() noexcept : fd_(open_again("/proc/self/pagemap")) {
  if (fd_ < 0) err_ = errno;
}

PageCounter::~PageCounter() {
  if (fd_ >= 0) sys::table.close(fd_);
}

std::optional<std::uint64_t> PageCounter::entered_bytes(const void* address,
                                                        std::uint64_t size_bytes) noexcept {
  if (fd_ < 0) return std::nullopt;
  const std::uint64_t start = round_down(address_of(address), page_bytes());
  const std::uint64_t end = round_up(address_of(address) + size_bytes, page_bytes());
  if (has_scan_) {
    if (const auto found = scan(start, end)) return found;
    has_scan_ = false;
  }
  return walk(start, end, [](std::uint64_t entry) { return (entry & kEntryPresent) != 0; });
}

std::optional<std::uint64_t> PageCounter::copied_bytes(const void* address,
                                                       std::uint64_t size_bytes) noexcept {
  if (fd_ < 0) return std::nullopt;
  return walk(round_down(address_of(address), page_bytes()),
              round_up(address_of(address) + size_bytes, page_bytes()), &entry_copied);
}

std::optional<std::uint64_t> PageCounter::scan(std::uint64_t start, std::uint64_t end) noexcept {
  std::array<PageStretch, 512> stretches;
  std::uint64_t bytes = 0;
  while (start < end) {
    PagemapScan argument{};
    argument.size = sizeof argument;
    argument.start = start;
    argument.end = end;
    argument.stretches = address_of(stretches.data());
    argument.stretches_length = stretches.size();
    argument.all_of = kPagePresent;
    argument.told = kPagePresent;
    const int found = sys::table.ioctl(fd_, kPagemapScan, &argument);
    if (found < 0 && errno == EINTR) continue;
    if (found < 0 || argument.walk_end <= start) return std::nullopt;
    for (int i = 0; i < found; ++i) {
      const PageStretch& stretch = stretches[static_cast<std::size_t>(i)];
      bytes += stretch.end - stretch.start;
    }
    start = argument.walk_end;
  }
  return bytes;
}

std::optional<std::uint64_t> PageCounter::walk(std::uint64_t start, std::uint64_t end,
                                               bool (*counts)(std::uint64_t entry)) noexcept {
  std::array<std::uint64_t, 1024> entries;
  std::uint64_t bytes = 0;
  for (std::uint64_t at = start; at < end;) {
    const std::uint64_t wanted = std::min<std::uint64_t>((end - at) / page_bytes(), entries.size());
    const ssize_t got = pread_again(fd_, entries.data(), wanted * sizeof(std::uint64_t),
                                    at / page_bytes() * sizeof(std::uint64_t));
    if (got < 0) err_ = errno;
    if (got < static_cast<ssize_t>(sizeof(std::uint64_t))) return std::nullopt;
    const std::uint64_t count = static_cast<std::uint64_t>(got) / sizeof(std::uint64_t);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (counts(entries[i])) bytes += page_bytes();
    }
    at += count * page_bytes();
  }
  return bytes;
}

int give_back_pages(void* address, std::uint64_t size_bytes) noexcept {
  return advise(address, size_bytes, MADV_DONTNEED);
}

int leave_out_of_dumps(void* address, std::uint64_t size_bytes) noexcept {
  return advise(address, size_bytes, MADV_DONTDUMP);
}

std::optional<bool> may_lose_writes(const void* address, std::uint64_t size_bytes) {
  const std::optional<std::string> maps = read_text("/proc/self/maps");
  if (!maps) return std::nullopt;
  const std::uint64_t start = address_of(address);
  bool is_private = false;
  for (const std::string_view line : split(*maps, '\n')) {  // "7f00-7f10 rw-p ..."
    std::uint64_t from = 0, to = 0;
    const char* const end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), end, from, 16);
    if (first.ec != std::errc() || first.ptr == end) continue;
    const auto second = std::from_chars(first.ptr + 1, end, to, 16);
    const auto rest = static_cast<std::size_t>(end - second.ptr);
    if (second.ec != std::errc() || rest < 5) continue;
    if (from >= start + size_bytes || start >= to || second.ptr[4] != 'p') continue;
    if (second.ptr[2] == 'w') return true;
    is_private = true;
  }
  if (!is_private) return false;
  const std::optional<std::uint64_t> copied = PageCounter().copied_bytes(address, size_bytes);
  return copied ? std::optional(*copied != 0) : std::nullopt;
}

}  // namespace lowtide
