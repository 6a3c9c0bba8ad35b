// libc's syscall and prctl, with which programs set a seccomp filter (libseccomp too, because libc
// has no function for it). Any other call is passed on unchanged by a jump: with all registers, and
// without a stack frame of ours.
#include "ceiling/shim/hooks.h"
#include "ceiling/shim/shim.h"
#include "os/bare.h"
#include "os/bare_call.h"

namespace lowtide::ceiling {

namespace {

using Syscall = long (*)(long, long, long, long, long, long, long);
using Prctl = int (*)(int, long, long, long, long);

constexpr long kStrict = 0, kFilter = 1;  // SECCOMP_SET_MODE_...
constexpr long kAllThreads = 1 << 0;      // SECCOMP_FILTER_FLAG_TSYNC
constexpr long kListener = 1 << 3;        // SECCOMP_FILTER_FLAG_NEW_LISTENER

long early_syscall(long number, long a, long b, long c, long d, long e, long f);
int early_prctl(int option, long a, long b, long c, long d);

constinit Syscall next_syscall = &early_syscall;
constinit Prctl next_prctl = &early_prctl;

// Used until our constructor has run, because libraries that start earlier may call these. On an
// architecture without hand-made system calls, a call would end up here again.
long early_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if constexpr (bare::kByHand) return told<long>(bare::call_words(number, a, b, c, d, e, f));
  find_next_calls();
  if (next_syscall == &early_syscall) return told<long>(-ENOSYS);
  return next_syscall(number, a, b, c, d, e, f);
}
int early_prctl(int option, long a, long b, long c, long d) {
  return static_cast<int>(next_syscall(bare::kPrctlCall, option, a, b, c, d, 0));
}

// A null filter only asks whether the kernel supports filters.
bool sets_filter(long operation, long filter) {
  return operation == kStrict || (operation == kFilter && filter != 0);
}

void after(bool stepped_back, bool in_force) {
  if (!stepped_back) return;
  if (in_force) {
    shim.stay_back();
    return;
  }
  const int saved = errno;
  shim.come_again();
  errno = saved;
}

__attribute__((noinline, cold)) long seccomp(long operation, long flags, long filter) {
  const bool back = sets_filter(operation, filter) && shim.step_back();
  const long result = next_syscall(bare::kSeccompCall, operation, flags, filter, 0, 0, 0);
  // If a thread could not be synchronised, the result is its id, unless a listener was requested.
  const bool refused =
      result < 0 || (result > 0 && (flags & kAllThreads) != 0 && (flags & kListener) == 0);
  after(back, !refused);
  return result;
}

__attribute__((noinline, cold)) int set_seccomp(long mode, long filter, long c, long d) {
  const bool back = sets_filter(mode - 1, filter) && shim.step_back();  // modes count from 1
  const int result = next_prctl(bare::kSetSeccomp, mode, filter, c, d);
  after(back, result == 0);
  return result;
}

}  // namespace

void find_next_calls() {
  if (void* const found = bare::next_function("syscall")) {
    next_syscall = reinterpret_cast<Syscall>(found);
  }
  if (void* const found = bare::next_function("prctl")) {
    next_prctl = reinterpret_cast<Prctl>(found);
  }
}

}  // namespace lowtide::ceiling

using namespace lowtide;
using namespace lowtide::ceiling;

// Declared with as many words as a call can have: a variadic function would spill them to the
// stack.
LOWTIDE_HOOK long lowtide_syscall(long number, long a, long b, long c, long d, long e,
                                  long f) asm("syscall");
LOWTIDE_HOOK int lowtide_prctl(int option, long a, long b, long c, long d) asm("prctl");

LOWTIDE_HOOK long lowtide_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (__builtin_expect(number == bare::kSeccompCall, 0)) return seccomp(a, b, c);
  return next_syscall(number, a, b, c, d, e, f);
}

LOWTIDE_HOOK int lowtide_prctl(int option, long a, long b, long c, long d) {
  if (__builtin_expect(option == bare::kSetSeccomp, 0)) return set_seccomp(a, b, c, d);
  return next_prctl(option, a, b, c, d);
}
