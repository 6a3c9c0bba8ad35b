// olmo.h - OLMo's and Dolma's token files: named .npy, but written by np.memmap, so without NumPy's
// header. The bytes are nanoGPT's.
#pragma once

#include "format/token_source.h"

namespace lowtide::olmo {

// By its name, once no format knows its bytes.
[[nodiscard]] bool matches(const TokenSource& source);

// As nanogpt::open.
[[nodiscard]] TokenLayout open(const TokenSource& source);

}  // namespace lowtide::olmo
