// cpu.h - what the processor can do beyond the baseline that the library is compiled for.
#pragma once

namespace lowtide {

// Whether code compiled for AVX2 may run here: the processor has it and the kernel saves its
// registers. The first call asks, the others return its answer. Any thread.
//
// Our own question, because the compiler's (__builtin_cpu_supports) needs a symbol of its run-time
// library that not every toolchain has.
[[nodiscard]] bool has_avx2() noexcept;
// The same for AVX-512 Foundation.
[[nodiscard]] bool has_avx512() noexcept;

}  // namespace lowtide
