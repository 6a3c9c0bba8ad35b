#include "os/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <limits>

#include "core/checked.h"
#include "lowtide/error.h"
#include "os/residency.h"
#include "os/sys.h"

namespace lowtide {
namespace {

constexpr std::size_t kHugeBytes = std::size_t{2} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

std::size_t mapped_bytes(std::size_t size_bytes) {
  return static_cast<std::size_t>(round_up(size_bytes, page_bytes()));
}

// nullptr: out of memory.
std::byte* map(std::size_t size_bytes) {
  void* const at = sys::table.mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// The kernel aligns only to pages, so one extra huge page is reserved and the excess is returned.
std::byte* map_huge_aligned(std::size_t size_bytes) {
  std::byte* const reserved = map(size_bytes + kHugeBytes);
  if (reserved == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(reserved);
  const auto head = static_cast<std::size_t>(round_up(address, kHugeBytes) - address);
  std::byte* const start = reserved + head;
  if (head != 0) ::munmap(reserved, head);
  if (head != kHugeBytes) ::munmap(start + size_bytes, kHugeBytes - head);
  return start;
}

// False if memory has run out.
bool populate(std::byte* at, std::size_t size_bytes) {
  int done = 0;
  do {
    done = sys::table.madvise(at, size_bytes, kPopulateWrite);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return true;
  if (errno == ENOMEM) return false;
  for (std::size_t i = 0; i < size_bytes; i += page_bytes()) {
    static_cast<volatile std::byte*>(at)[i] = std::byte{0};
  }
  return true;
}

}  // namespace

Memory::Memory(std::size_t size_bytes, bool prefault, const char* what_for) {
  if (size_bytes == 0) return;
  if (size_bytes > std::numeric_limits<std::size_t>::max() / 2) {
    throw NoMemory(size_bytes, what_for);
  }
  const std::size_t mapped = mapped_bytes(size_bytes);
  const bool huge = mapped >= kHugeBytes;
  std::byte* const at = huge ? map_huge_aligned(mapped) : map(mapped);
  if (at == nullptr) throw NoMemory(size_bytes, what_for);
  // Small memory opts out: where huge pages are always on, it could become part of one that spans
  // its neighbours and would not be returned when freed. The result is ignored, because a kernel
  // without huge pages refuses the advice.
  (void)sys::table.madvise(at, mapped, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (prefault && !populate(at, mapped)) {
    ::munmap(at, mapped);
    throw NoMemory(size_bytes, what_for);
  }
  data_ = at;
  size_bytes_ = size_bytes;
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  Memory taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_bytes_, taken.size_bytes_);
  return *this;
}

Memory::~Memory() {
  if (data_ != nullptr) ::munmap(data_, mapped_bytes(size_bytes_));
}

}  // namespace lowtide
