#include "os/bare.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "os/bare_call.h"

namespace lowtide::bare {

namespace {

constexpr std::size_t kStackBytes = 256 << 10;  // enough for libraries with much thread-local data
constexpr std::size_t kKernelSignalBytes = 8;   // the kernel's sigset_t, not libc's

timespec timespec_of(std::uint64_t time_ns) {
  return {.tv_sec = static_cast<time_t>(time_ns / 1'000'000'000),
          .tv_nsec = static_cast<long>(time_ns % 1'000'000'000)};
}

}  // namespace

long open_file(const char* path, int flags) {
  return call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}
long reopen_file(int fd, int flags) {
  constexpr char kFolder[] = "/proc/thread-self/fd/";  // a thread may have its own descriptors
  char path[sizeof kFolder + 12];
  char* to = path;
  for (const char* from = kFolder; *from != 0;) *to++ = *from++;
  char digits[12];
  int count = 0;
  for (int rest = fd; count == 0 || rest != 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) *to++ = digits[--count];
  *to = 0;
  return open_file(path, flags);
}
long seals_of(int fd) {
  return call(SYS_fcntl, fd, F_GET_SEALS);
}
long close_file(int fd) {
  return call(SYS_close, fd);
}
long read_at(int fd, void* into, std::size_t size_bytes, std::uint64_t offset_bytes) {
  return call(SYS_pread64, fd, into, size_bytes, offset_bytes);
}
long stat_of(int fd, struct stat* out) {
  const int before = errno;  // through libc: the kernel's struct differs by machine
  const long result = ::fstat(fd, out) == 0 ? 0 : -static_cast<long>(errno);
  errno = before;
  return result;
}
bool kept_in_memory(int fd) {
  const int before = errno;
  struct statfs system {};
  const bool told = ::fstatfs(fd, &system) == 0;
  errno = before;
  return told && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC ||
                  system.f_type == HUGETLBFS_MAGIC);
}
long advise(Range range, int advice) {
  return call(SYS_madvise, range.start, range.end - range.start, advice);
}
long drop_cache(int fd, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  return call(SYS_fadvise64, fd, offset_bytes, size_bytes, POSIX_FADV_DONTNEED);
}
long map(void* at, std::size_t size_bytes, int protection, int flags, int fd, off_t offset_bytes) {
  return call(SYS_mmap, at, size_bytes, protection, flags, fd, offset_bytes);
}
long unmap(void* at, std::size_t size_bytes) {
  return call(SYS_munmap, at, size_bytes);
}
long remap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to) {
  return call(SYS_mremap, at, old_bytes, new_bytes, flags, to);
}
long protect(void* at, std::size_t size_bytes, int protection, int key) {
  if (key == -1) return call(SYS_mprotect, at, size_bytes, protection);
  return call(SYS_pkey_mprotect, at, size_bytes, protection, key);
}
long control(int fd, unsigned long request, void* argument) {
  return call(SYS_ioctl, fd, request, argument);
}

std::uintptr_t page_bytes() {
  return static_cast<std::uintptr_t>(::getpagesize());
}
int process_id() {
  return static_cast<int>(call(SYS_getpid));
}
bool process_gone(int pid) {
  return call(SYS_kill, pid, 0) == -ESRCH;
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_ns(std::uint64_t time_ns) {
  const timespec time = timespec_of(time_ns);
  call(SYS_nanosleep, &time, nullptr);
}

std::uint64_t block_signals() {
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, kKernelSignalBytes);
  return before;
}

void restore_signals(std::uint64_t mask) {
  call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, kKernelSignalBytes);
}

void wait_word(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t time_ns) {
  const timespec time = timespec_of(time_ns);
  call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, time_ns == 0 ? nullptr : &time, nullptr, 0);
}

void wake_word(std::atomic<std::uint32_t>& word) {
  call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

bool leave_descriptors() {
  constexpr unsigned kUnshare = 1U << 1;  // CLOSE_RANGE_UNSHARE, Linux 5.9
  constexpr long kCloseRange = 436;
  if (call(kCloseRange, 0U, ~0U, kUnshare) == 0) return true;
  if (call(SYS_unshare, CLONE_FILES) != 0) return false;
  rlimit limit{};
  call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  constexpr rlim_t kMost = 1 << 16;
  const int most = static_cast<int>(limit.rlim_cur < kMost ? limit.rlim_cur : kMost);
  for (int fd = 0; fd < most; ++fd) call(SYS_close, fd);
  return true;
}

void* next_function(const char* name) {
  return ::dlsym(RTLD_NEXT, name);
}

bool start_thread(void* (*run)(void*), pthread_t* out) {
  pthread_attr_t how;
  if (::pthread_attr_init(&how) != 0) return false;
  ::pthread_attr_setstacksize(&how, kStackBytes);
  // Through libc, which keeps open the signal by which setuid reaches every thread.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = ::pthread_create(out, &how, run, nullptr) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&how);
  return started;
}

void join_thread(pthread_t thread) {
  ::pthread_join(thread, nullptr);
}

void name_thread(const char* name) {
  call(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
}

void run_soon() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } wish{};
  wish.size = sizeof wish;
  constexpr std::uint64_t kShortestSliceNs = 100'000;
  constexpr int kHigh = -15;
  if (call(SYS_sched_getattr, 0, &wish, sizeof wish, 0) != 0 || wish.policy != SCHED_OTHER) return;
  wish.size = sizeof wish;
  wish.runtime_ns = kShortestSliceNs;
  wish.deadline_ns = wish.period_ns = 0;
  call(SYS_sched_setattr, 0, &wish, 0);
  wish.nice = kHigh;
  call(SYS_sched_setattr, 0, &wish, 0);
}

void at_fork(void (*child)()) {
  ::pthread_atfork(nullptr, nullptr, child);
}

std::uint64_t filters() {
  const long fd = open_file("/proc/self/status", O_RDONLY);
  if (fd < 0) return 0;
  const auto number_of = [](const char* line, const char* name) {
    while (*name != 0) {
      if (*line++ != *name++) return std::uint64_t{0};
    }
    std::uint64_t number = 0;
    for (; *line != 0; ++line) {
      if (*line >= '0' && *line <= '9') number = number * 10 + static_cast<unsigned>(*line - '0');
    }
    return number;
  };
  std::uint64_t found = 0;  // the mode (0, 1, 2), replaced by the number if the kernel reports it
  char text[1024];
  char line[32];
  std::size_t length = 0;
  for (long count = 0; (count = call(SYS_read, fd, text, sizeof text)) > 0;) {
    for (long i = 0; i < count; ++i) {
      if (text[i] != '\n') {
        if (length + 1 < sizeof line) line[length++] = text[i];
        continue;
      }
      line[length] = 0;
      length = 0;
      for (const char* name : {"Seccomp:", "Seccomp_filters:"}) {
        if (const std::uint64_t number = number_of(line, name); number != 0) found = number;
      }
    }
  }
  close_file(static_cast<int>(fd));
  return found;
}

}  // namespace lowtide::bare
