// utf8.h - where characters end in bytes that may be no UTF-8 at all.
#pragma once

#include <cstddef>
#include <string_view>

namespace lowtide {

// The bytes of the character that `bytes` begins with; 0 where they are none (stray, cut, overlong,
// a surrogate, beyond U+10FFFF) or there are no bytes.
[[nodiscard]] std::size_t utf8_size(std::string_view bytes) noexcept;

}  // namespace lowtide
