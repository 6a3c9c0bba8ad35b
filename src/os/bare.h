// bare.h - system calls for code that lives inside other people's programs.
//
// Nothing here allocates, throws, needs libstdc++, or changes errno; none of it goes through the
// functions of libc that a preloaded library may replace. Any thread may call, also between fork
// and exec, and from a signal handler.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lowtide::bare {

// A range of addresses, whole pages; empty where start == end.
struct Range {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] std::uint64_t bytes() const { return end - start; }
};

// Each returns what the system call returns, or -errno.
long open_file(const char* path, int flags);
long reopen_file(int fd, int flags);  // the very same file, whatever names it by now
long seals_of(int fd);                // of a memfd (F_SEAL_...); an error for other files
long close_file(int fd);
long read_at(int fd, void* into, std::size_t size_bytes, std::uint64_t offset_bytes);
long stat_of(int fd, struct stat* out);
[[nodiscard]] bool kept_in_memory(int fd);  // tmpfs and its like: no disk behind the file
long advise(Range range, int advice);
long drop_cache(int fd, std::uint64_t offset_bytes, std::uint64_t size_bytes);
long map(void* at, std::size_t size_bytes, int protection, int flags, int fd, off_t offset_bytes);
long unmap(void* at, std::size_t size_bytes);
long remap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to);
long protect(void* at, std::size_t size_bytes, int protection, int key);  // key -1: none
long control(int fd, unsigned long request, void* argument);

[[nodiscard]] std::uintptr_t page_bytes();
[[nodiscard]] int process_id();
[[nodiscard]] bool process_gone(int pid);
[[nodiscard]] std::uint64_t now_ns();
void sleep_ns(std::uint64_t time_ns);

// Blocks every signal in this thread; the mask to give back.
[[nodiscard]] std::uint64_t block_signals();
void restore_signals(std::uint64_t mask);

// Waits until *word != value or a wake-up; may return early. time_ns 0: without end.
void wait_word(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t time_ns);
void wake_word(std::atomic<std::uint32_t>& word);

// Gives the calling thread a table of descriptors of its own, empty: what it opens takes no number
// from the program, what it closes releases none of its file locks. False where the kernel refuses.
[[nodiscard]] bool leave_descriptors();

// The next definition of a function after ours in the order of libraries; null if there is none.
// Not for hooks: the dynamic linker may allocate.
[[nodiscard]] void* next_function(const char* name);

// A thread with all signals blocked and a small stack, to be joined or to end with the process.
// False where the system refuses it. Calls malloc within libc, so never where a lock of malloc may
// be held.
[[nodiscard]] bool start_thread(void* (*run)(void*), pthread_t* out);
void join_thread(pthread_t thread);  // after this it makes no system call any more
void name_thread(const char* name);  // the calling one; up to 15 characters
// Asks that the calling thread, which never runs for long, runs soon when it wakes up: a short
// slice (Linux 6.12) and, where the process may, a better priority. Refusals change nothing.
void run_soon();

// fork calls it in the child, after what was registered before.
void at_fork(void (*child)());

// Filters of system calls (seccomp) that this thread is under, by its own doing or that of whoever
// started the program; before Linux 5.9 only 0 or not 0. Uses no call but openat, read and close,
// which the start of any program needs.
[[nodiscard]] std::uint64_t filters();
// What syscall() and prctl() are given to set such a filter.
inline constexpr long kSeccompCall = SYS_seccomp, kPrctlCall = SYS_prctl;
inline constexpr int kSetSeccomp = 22;  // PR_SET_SECCOMP

}  // namespace lowtide::bare
