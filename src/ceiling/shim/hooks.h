// hooks.h - shared by the files that define hooks.
#pragma once

#include <cerrno>

#define LOWTIDE_HOOK extern "C" __attribute__((visibility("default")))

// A hook is declared as its C library declares the function: glibc says that it does not throw.
#if defined(__GLIBC__)
#define LOWTIDE_NOTHROW noexcept
#else
#define LOWTIDE_NOTHROW
#endif

namespace lowtide::ceiling {

// Converts the result of a bare system call to that of libc's function, which sets errno.
template <typename Result>
Result told(long result) {
  if (result >= 0 || result < -4095) return (Result)result;
  errno = static_cast<int>(-result);
  return (Result)-1;
}

// hooks_calls.cc: finds the functions that its hooks call. Call it once, before any hook runs.
void find_next_calls();

}  // namespace lowtide::ceiling
