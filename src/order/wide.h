// wide.h - an unsigned integer that holds the product of two 64-bit ones.
#pragma once

namespace lowtide {

__extension__ using Wide = unsigned __int128;

}  // namespace lowtide
