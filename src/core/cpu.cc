#include "core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace lowtide {
namespace {

struct Vectors {
  bool avx2 = false, avx512 = false;
};

#if defined(__x86_64__)
// Of XCR0: which registers the kernel saves.
constexpr unsigned kYmmState = 0b110;        // SSE, AVX
constexpr unsigned kZmmState = 0b1110'0110;  // and the three parts of AVX-512

[[gnu::target("xsave")]] Vectors ask() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  if ((c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) return {};
  const auto saved = static_cast<unsigned>(_xgetbv(0));
  if ((saved & kYmmState) != kYmmState) return {};
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return {};
  return {.avx2 = (b & bit_AVX2) != 0,
          .avx512 = (b & bit_AVX512F) != 0 && (saved & kZmmState) == kZmmState};
}
#else
Vectors ask() noexcept {
  return {};
}
#endif

const Vectors& vectors() noexcept {
  static const Vectors answer = ask();  // a virtual machine takes microseconds for each cpuid
  return answer;
}

}  // namespace

bool has_avx2() noexcept {
  return vectors().avx2;
}
bool has_avx512() noexcept {
  return vectors().avx512;
}

}  // namespace lowtide
