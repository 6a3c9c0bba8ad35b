// hooks.h - what the files with hooks share.
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

// From what a bare system call returns to what libc's function does.
template <typename Result>
Result told(long result) {
  if (result >= 0 || result < -4095) return (Result)result;
  errno = static_cast<int>(-result);
  return (Result)-1;
}

// hooks_calls.cc: finds what its hooks pass on to. Once, before any of them is needed.
void find_next_calls();

}  // namespace lowtide::ceiling
