// npy_tokens.h - tokens in a .npy file: a header of npy.h and integers on one axis.
#pragma once

#include "format/token_source.h"

namespace lowtide::npy_tokens {

// Refuses more than one axis and anything but little-endian integers.
extern const TokenFormat kFormat;

}  // namespace lowtide::npy_tokens
