// bare.h - system calls for code that runs inside other people's programs.
//
// Nothing here allocates, throws, needs libstdc++ or changes errno, and nothing goes through libc
// functions that a preloaded library may replace. Any thread may call, including between fork and
// exec and from a signal handler.
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

// A range of addresses, in whole pages; empty if start == end.
struct Range {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] std::uint64_t bytes() const { return end - start; }
};

// Each returns the result of the system call, or -errno.
long open_file(const char* path, int flags);
long reopen_file(int fd, int flags);  // the very same file, even if its path has changed
long seals_of(int fd);                // of a memfd (F_SEAL_...); an error for any other file
long close_file(int fd);
long read_at(int fd, void* into, std::size_t size_bytes, std::uint64_t offset_bytes);
long stat_of(int fd, struct stat* out);
[[nodiscard]] bool kept_in_memory(int fd);  // tmpfs and similar: the file has no disk
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

// Blocks every signal in this thread; returns the mask to restore.
[[nodiscard]] std::uint64_t block_signals();
void restore_signals(std::uint64_t mask);

// Waits until *word != value or a wake-up; may return early. time_ns 0: no time limit.
void wait_word(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t time_ns);
void wake_word(std::atomic<std::uint32_t>& word);

// Gives the calling thread an empty descriptor table of its own: files that it opens take no
// numbers from the program, and files that it closes release none of the program's file locks.
// False if the kernel refuses.
[[nodiscard]] bool leave_descriptors();

// The next definition of a function after ours in library order; null if there is none. Must not be
// called from hooks, because the dynamic linker may allocate.
[[nodiscard]] void* next_function(const char* name);

// Starts a thread with all signals blocked and a small stack, which is joined or ends with the
// process. False if the system refuses. libc calls malloc here, so this must never be called while
// a lock of malloc may be held.
[[nodiscard]] bool start_thread(void* (*run)(void*), pthread_t* out);
void join_thread(pthread_t thread);  // after this, it makes no more system calls
void name_thread(const char* name);  // the calling thread; up to 15 characters
// Asks the scheduler to run the calling thread, which never runs for long, soon after it wakes up:
// a short slice (Linux 6.12) and, if permitted, a better priority. Refusals are ignored.
void run_soon();

// Registers a function that fork calls in the child, after those registered earlier.
void at_fork(void (*child)());

// The number of seccomp filters that apply to this thread, whether it set them itself or inherited
// them; before Linux 5.9 only 0 or not 0. Uses only openat, read and close, which the start of any
// program needs.
[[nodiscard]] std::uint64_t filters();
// The arguments of syscall() and prctl() that set such a filter.
inline constexpr long kSeccompCall = SYS_seccomp, kPrctlCall = SYS_prctl;
inline constexpr int kSetSeccomp = 22;  // PR_SET_SECCOMP

}  // namespace lowtide::bare
