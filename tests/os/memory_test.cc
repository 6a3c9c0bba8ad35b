#include "os/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/error.h"
#include "os/residency.h"
#include "os/sys.h"
#include "support/thrown.h"

namespace lowtide::memory_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t resident_pages(const Memory& memory) {
  const std::size_t pages = (memory.size() + page_bytes() - 1) / page_bytes();
  std::vector<unsigned char> present(pages);
  EXPECT_EQ(::mincore(memory.data(), memory.size(), present.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(present.begin(), present.end(), [](unsigned char p) { return (p & 1) != 0; }));
}

bool is_mapped(const void* at) {
  unsigned char present = 0;
  return ::mincore(const_cast<void*>(at), 1, &present) == 0;
}

TEST(Memory, IsZeroedAlignedAndAllUsable) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, 2 * kMiB - 4096, 2 * kMiB,
                                 2 * kMiB + 1, 5 * kMiB + 12345}) {
    const Memory memory(size);
    EXPECT_EQ(memory.size(), size);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    EXPECT_EQ(address % (size >= 2 * kMiB ? 2 * kMiB : 4096), 0u) << size;
    EXPECT_EQ(memory.bytes()[size - 1], std::byte{0});
    std::memset(memory.data(), 1, size);
    EXPECT_EQ(memory.bytes()[size - 1], std::byte{1});
  }
}

TEST(Memory, OfNoBytesHasNoPages) {
  const Memory none;
  EXPECT_EQ(none.data(), nullptr);
  const Memory zero(0, true);
  EXPECT_EQ(zero.data(), nullptr);
  EXPECT_TRUE(zero.bytes().empty());
}

TEST(Memory, GivesBackWhatItReservedForAlignment) {
  static std::byte* start;
  static std::size_t reserved;
  static void* (*real)(void*, std::size_t, int, int, int, off_t);
  real = sys::table.mmap;
  const sys::Fault fault(
      sys::table.mmap,
      +[](void* address, std::size_t size, int protection, int flags, int fd, off_t offset) {
        void* const at = real(address, size, protection, flags, fd, offset);
        start = static_cast<std::byte*>(at);
        reserved = size;
        return at;
      });
  const std::size_t size = 3 * kMiB + 4096;
  const Memory memory(size);
  ASSERT_GT(reserved, size);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < reserved; i += 4096) {
    const std::byte* const page = start + i;
    const bool inside = page >= memory.data() && page < memory.data() + size;
    if (is_mapped(page) != inside) ++wrong;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(Memory, IsUnmappedWhenDestroyed) {
  const std::byte* at = nullptr;
  {
    const Memory memory(64 * kMiB);
    at = memory.data();
    EXPECT_TRUE(is_mapped(at));
  }
  EXPECT_FALSE(is_mapped(at + 32 * kMiB));
}

TEST(Memory, IsThereWhenPrefaulted) {
  EXPECT_EQ(resident_pages(Memory(kMiB)), 0u);
  EXPECT_EQ(resident_pages(Memory(kMiB, true)), kMiB / page_bytes());
}

TEST(Memory, TouchesPagesWhereTheKernelCannotPopulate) {
  const sys::Fault fault(
      sys::table.madvise, +[](void*, std::size_t, int) {
        errno = EINVAL;
        return -1;
      });
  EXPECT_EQ(resident_pages(Memory(kMiB, true)), kMiB / page_bytes());
}

TEST(Memory, SaysHowMuchCannotBeHad) {
  EXPECT_THROW(const Memory all(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  const std::string text =
      thrown<NoMemory>([&] { const Memory too_much(std::size_t{1} << 62, false, "a batch"); });
  EXPECT_NE(text.find("4194304 TiB for a batch"), std::string::npos) << text;
  const sys::Fault fault(
      sys::table.madvise, +[](void*, std::size_t, int) {
        errno = ENOMEM;
        return -1;
      });
  EXPECT_THROW(Memory(kMiB, true), NoMemory);
}

TEST(Memory, MovesWithoutCopying) {
  Memory first(kMiB);
  std::byte* const at = first.data();
  Memory second(std::move(first));
  EXPECT_EQ(second.data(), at);
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(first.size(), 0u);
  Memory third(2 * kMiB);
  third = std::move(second);
  EXPECT_EQ(third.data(), at);
  EXPECT_EQ(third.size(), kMiB);
  EXPECT_EQ(second.data(), nullptr);
}

}  // namespace
}  // namespace lowtide::memory_test
