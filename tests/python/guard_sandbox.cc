// A program that forbids itself system calls, and is killed for the first that it did not allow:
// those of a thread or a hook that somebody else brought in are such. guard_sandbox WAY FILE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kNotHere = 77;  // under a filter there is no strict mode

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(9);
}

void say(const char* text) {
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) std::_Exit(8);
}

// Reads all of the file through a map.
void read_file(const char* path, bool slowly) {
  const int fd = open(path, O_RDONLY);
  const off_t size = lseek(fd, 0, SEEK_END);
  void* const at = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, fd, 0);
  if (fd < 0 || at == MAP_FAILED) fail(path);
  for (off_t page = 0; page < size; page += 4096) {
    (void)static_cast<volatile char*>(at)[page];
    if (slowly && page % (1 << 20) == 0) usleep(1000);
  }
  if (munmap(at, static_cast<std::size_t>(size)) != 0) fail("munmap");
  close(fd);
}

// None of these is needed for what follows, and a guard would need them all.
constexpr int kForbidden[] = {
    SYS_rt_sigprocmask,
    SYS_futex,
    SYS_clone,
    SYS_ioctl,
    SYS_sched_setattr,
    SYS_sched_getattr,
    SYS_unshare,
    SYS_madvise,
    SYS_getpid,
    SYS_kill,
    SYS_fstatfs,
    SYS_fcntl,
    SYS_nanosleep,
    SYS_prctl,
    SYS_clock_nanosleep,
    435 /* clone3 */,
    436 /* close_range */,
};
constexpr std::size_t kCount = sizeof kForbidden / sizeof kForbidden[0];

sock_filter code[kCount + 3];
sock_fprog filter{kCount + 3, code};

void make_filter() {
  code[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto to_the_end = static_cast<unsigned char>(kCount - i);
    code[i + 1] =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(kForbidden[i]), to_the_end, 0);
  }
  code[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
}

void in_a_child(char** words) {
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) fail("prctl");
    char plain[] = "plain";
    char* again[] = {words[0], plain, words[2], nullptr};
    execv("/proc/self/exe", again);
    fail("execv");
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "the child ended with status %x\n", static_cast<unsigned>(status));
    std::_Exit(7);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string way = words[1];
  read_file(words[2], way != "plain");  // there is a trimmer from here on
  if (way == "plain") {
    say("good\n");
    std::_Exit(0);
  }
  make_filter();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  // A filter at null is how programs ask whether there is seccomp at all.
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) == 0) fail("null");
  if (way == "all_threads") {
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0) {
      fail("seccomp");
    }
  } else if (way == "prctl") {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) fail("prctl");
  } else if (way == "strict") {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) return kNotHere;
    say("good\n");
    syscall(SYS_exit, 0);  // only this thread: the process ends if it was the last
  } else if (way == "refused") {
    filter.len = 0;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0) fail("it was not refused");
  } else if (way == "exec") {
    in_a_child(words);
  } else {
    return 2;
  }
  read_file(words[2], way == "refused");
  say(way == "exec" ? "" : "good\n");
  std::_Exit(0);
}
