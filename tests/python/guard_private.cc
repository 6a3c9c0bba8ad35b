// Writes into a private map in ways that no hook of libc sees, reads the file again and again so
// that its pages are trimmed, and tells the writes that were lost and the most that was resident.
// guard_private WAY FILE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kEvery = 84 * kPage;  // a mark in each
constexpr int kRounds = 6;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(9);
}

void protect(char* at, std::size_t size, int protection) {
  if (syscall(SYS_mprotect, at, size, protection) != 0) fail("mprotect");
}

void write_marks(char* at, std::size_t size, const std::string& way) {
  const int memory = open("/proc/self/mem", O_RDWR);
  if (memory < 0) fail("/proc/self/mem");
  if (way == "raw") protect(at, size, PROT_READ | PROT_WRITE);
  for (std::size_t mark = 0; mark < size; mark += kEvery) {
    if (way == "raw") {
      at[mark] = 'w';
    } else if (pwrite(memory, "w", 1, static_cast<off_t>(reinterpret_cast<long>(at + mark))) != 1) {
      fail("pwrite");
    }
  }
  if (way == "raw") protect(at, size, PROT_READ);
  close(memory);
}

// Pages of files, in MiB.
std::size_t resident_mib() {
  std::size_t all = 0, resident = 0, shared = 0;
  std::FILE* const statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%zu %zu %zu", &all, &resident, &shared) != 3) {
    fail("statm");
  }
  std::fclose(statm);
  return shared * kPage >> 20;
}

std::size_t peak_mib = 0;
bool marked = false;

// Reads all of it, slowly enough for a trimmer to follow, and gives the marks that are not there.
std::size_t lost_marks(const volatile char* at, std::size_t size) {
  std::size_t lost = 0;
  for (std::size_t page = 0; page < size; page += kPage) {
    if (marked && page % kEvery == 0 && at[page] != 'w') ++lost;
    (void)at[page];
    if (page % (1 << 20) != 0) continue;
    usleep(300);
    if (const std::size_t now = resident_mib(); now > peak_mib) peak_mib = now;
  }
  return lost;
}

// A shared map of the file with the private one right behind it.
char* map_behind_another(int fd, std::size_t size) {
  void* const room = mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) fail("mmap");
  char* const at = static_cast<char*>(room);
  if (mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
      mmap(at + size, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
    fail("mmap");
  }
  return at + size;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const int fd = open(words[2], O_RDONLY);
  struct stat told {};
  if (fd < 0 || fstat(fd, &told) != 0) fail(words[2]);
  const auto size = static_cast<std::size_t>(told.st_size);
  const std::string way = words[1];
  char* const at = map_behind_another(fd, size);
  if (way == "failed") {  // calls that the kernel refuses: both maps stay as they are
    if (mremap(at - size, 2 * size, 4 * size, 0) != MAP_FAILED) fail("mremap did not fail");
    if (munmap(at - 1, size) == 0) fail("munmap did not fail");
    if (mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 1) != MAP_FAILED) fail("mmap did");
  } else {
    write_marks(at, size, way);
    marked = true;
  }
  std::size_t lost = 0;
  for (int round = 0; round < kRounds && lost == 0; ++round) lost = lost_marks(at, size);
  std::printf("%zu of %zu lost, %zu MiB\n", lost, (size + kEvery - 1) / kEvery, peak_mib);
}
