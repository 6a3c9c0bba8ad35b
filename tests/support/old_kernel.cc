// Runs a program as on a kernel before 6.7: the questions that PAGEMAP_SCAN (6.7) and PROCMAP_QUERY
// (6.11) ask of files in /proc get ENOTTY. old_kernel PROGRAM [ARGUMENT...]
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace {

constexpr unsigned kPagemapScan = 0xC0606610;
constexpr unsigned kMapQuery = 0xC0686611;

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
constexpr sock_filter jump_if(unsigned value, unsigned char yes, unsigned char no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}
constexpr sock_filter answer(unsigned what) {
  return BPF_STMT(BPF_RET | BPF_K, what);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  sock_filter code[] = {
      load(offsetof(seccomp_data, nr)),
      jump_if(SYS_ioctl, 0, 4),
      load(offsetof(seccomp_data, args[1])),
      jump_if(kPagemapScan, 1, 0),
      jump_if(kMapQuery, 0, 1),
      answer(SECCOMP_RET_ERRNO | ENOTTY),
      answer(SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    std::perror("old_kernel: seccomp");
    return 125;
  }
  execvp(words[1], words + 1);
  std::perror(words[1]);
  return 127;
}
