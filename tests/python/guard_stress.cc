// Threads that map, read and unmap files at random beside anonymous memory of their own, which must
// never change: a trim that came too late for an address would zero it. guard_stress SECONDS
// FILE...
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMapBytes = 8 << 20;

void fail(const char* what) {
  std::fprintf(stderr, "guard_stress: %s\n", what);
  std::_Exit(9);
}

void* map(void* at, int protection, int flags, int fd, off_t offset) {
  void* const made = mmap(at, kMapBytes, protection, flags, fd, offset);
  if (made == MAP_FAILED) fail("mmap");
  return made;
}

void read_file(const unsigned char* at, std::uint64_t first_page) {
  for (std::size_t page = 0; page < kMapBytes / 4096; ++page) {
    std::uint64_t told = 0;  // every page of the file holds its number
    std::memcpy(&told, at + page * 4096, sizeof told);
    if (told != first_page + page) fail("a page of the file is not the one that was mapped");
  }
}

// Written, given time to be trimmed by mistake, and looked at again.
void canary(void* at) {
  std::memset(at, 0xa5, kMapBytes);
  std::this_thread::yield();
  const auto* bytes = static_cast<const unsigned char*>(at);
  for (std::size_t i = 0; i < kMapBytes; i += 64) {
    if (bytes[i] != 0xa5) fail("memory that was never a file's changed");
  }
}

void work(const char* path, unsigned seed, std::chrono::steady_clock::time_point end) {
  std::mt19937 random(seed);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) fail("open");
  const auto blocks = static_cast<unsigned>(lseek(fd, 0, SEEK_END) / off_t{kMapBytes});
  while (std::chrono::steady_clock::now() < end) {
    const off_t block = static_cast<off_t>(random() % blocks);
    const std::uint64_t first_page = static_cast<std::uint64_t>(block) * (kMapBytes / 4096);
    const int flags = random() % 4 == 0 ? MAP_PRIVATE : MAP_SHARED;
    void* at = map(nullptr, PROT_READ, flags, fd, block * off_t{kMapBytes});
    read_file(static_cast<unsigned char*>(at), first_page);
    switch (random() % 4) {
      case 0:  // the address goes to anonymous memory at once
        munmap(at, kMapBytes);
        at = map(at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        canary(at);
        break;
      case 1:  // in one call
        map(at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        canary(at);
        break;
      case 2: {  // the map moves away, and memory comes where it was
        void* const room = map(nullptr, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void* const moved = mremap(at, kMapBytes, kMapBytes, MREMAP_MAYMOVE | MREMAP_FIXED, room);
        if (moved != room) fail("mremap");
        at = map(at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        canary(at);
        read_file(static_cast<unsigned char*>(moved), first_page);
        munmap(moved, kMapBytes);
        break;
      }
      default:
        read_file(static_cast<unsigned char*>(at), first_page);
    }
    munmap(at, kMapBytes);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) fail("SECONDS FILE");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(words[1]));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) threads.emplace_back(work, words[2], i + 1, end);
  for (std::thread& one : threads) one.join();
  std::puts("good");
}
