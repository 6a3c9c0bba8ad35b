// bare_call.h - a system call made by hand: returns the kernel's result, or -errno.
//
// libc's own syscall() can be replaced by a preloaded library (the shim of guard does that), and it
// writes errno. It is used only on machines without an instruction sequence below.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <type_traits>

namespace lowtide::bare {

// Whether calls are made by hand on this machine.
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kByHand = true;
#else
inline constexpr bool kByHand = false;
#endif

inline long call_words(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
  const int before = errno;
  const long result = ::syscall(number, a, b, c, d, e, f);
  const long told = result == -1 ? -static_cast<long>(errno) : result;
  errno = before;
  return told;
#endif
}

template <typename Value>
long word_of(Value value) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<Value>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

template <typename... Arguments>
long call(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  const long words[7] = {word_of(arguments)...};
  return call_words(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // namespace lowtide::bare
