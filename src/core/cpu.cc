#include "core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace lowtide {
namespace {

#if defined(__x86_64__)
constexpr unsigned kYmmState = 0b110;  // of XCR0: the kernel saves the SSE and the AVX registers

[[gnu::target("xsave")]] bool ask_avx2() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  if ((c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) return false;
  if ((_xgetbv(0) & kYmmState) != kYmmState) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_AVX2) != 0;
}
#else
bool ask_avx2() noexcept {
  return false;
}
#endif

}  // namespace

bool has_avx2() noexcept {
  static const bool answer = ask_avx2();  // a virtual machine takes microseconds for each cpuid
  return answer;
}

}  // namespace lowtide
