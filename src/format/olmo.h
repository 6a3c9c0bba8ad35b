// olmo.h - the token files of OLMo and Dolma. They are named .npy, but np.memmap writes them
// without NumPy's header; the bytes are as in nanoGPT's files.
#pragma once

#include "format/token_source.h"

namespace lowtide::olmo {

// Recognises the name; asked only after no format recognised the bytes. Opens as nanogpt::open.
extern const TokenFormat kFormat;

}  // namespace lowtide::olmo
