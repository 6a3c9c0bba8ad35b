#include "ceiling/shim/page.h"

#include "os/bare.h"

namespace lowtide::ceiling {

namespace {

// Without these, the file could shrink under our map, and the next access would kill the program.
constexpr long kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

class Descriptor {
 public:
  explicit Descriptor(long opened) : fd_(static_cast<int>(opened)) {}
  ~Descriptor() {
    if (fd_ >= 0) bare::close_file(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return fd_; }

 private:
  int fd_;
};

bool page_like(int fd, struct stat& out) {
  return fd >= 0 && bare::stat_of(fd, &out) == 0 && S_ISREG(out.st_mode) &&
         out.st_size == static_cast<off_t>(sizeof(Page));
}

}  // namespace

// Goes from harmless to harmful, each step on the file that the previous step has checked: first
// only its name (opening a stranger's pipe or device would have effects), then for reading, then
// for writing.
Page* open_page(const char* path, std::uint64_t number) {
  const Descriptor named(bare::open_file(path, O_PATH));
  struct stat first {};
  if (number == 0 || !page_like(named, first)) return nullptr;
  const Descriptor readable(bare::reopen_file(named, O_RDONLY));
  if (readable < 0) return nullptr;
  const long seals = bare::seals_of(readable);
  if (seals < 0 || (seals & kSeals) != kSeals) return nullptr;
  std::uint64_t found = 0;
  if (bare::read_at(readable, &found, sizeof found, offsetof(Page, number)) != sizeof found ||
      found != number) {
    return nullptr;
  }
  // Reopened through the descriptor, not through the path, which may name another file by now.
  const Descriptor writable(bare::reopen_file(readable, O_RDWR));
  struct stat last {};
  if (!page_like(writable, last) || last.st_ino != first.st_ino || last.st_dev != first.st_dev) {
    return nullptr;
  }
  const long at = bare::map(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, writable, 0);
  return at > 0 ? reinterpret_cast<Page*>(at) : nullptr;
}

}  // namespace lowtide::ceiling
