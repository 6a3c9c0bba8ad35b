// bytes.h - sizes in bytes, and other numbers, as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

// Reads "64KiB", "256 MiB", "1.5GiB", "500MB" or "4096". KiB, MiB, GiB, TiB are powers of two;
// KB, MB, GB, TB powers of ten; "B" or nothing means bytes. Case does not matter, one space is
// allowed before the unit. The result is rounded down to a whole byte. Throws std::invalid_argument
// for anything else: empty, negative, zero, NaN, overflow, unknown unit. "512M", which is 2^29
// bytes to some tools and 512,000,000 to others, is answered with the question which of them is
// meant.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text);

// The shortest exact or three-digit spelling: 65536 -> "64 KiB", 1500 -> "1.46 KiB", 10 -> "10 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// So many decimals, "." in every locale: (3.14159, 2) -> "3.14".
[[nodiscard]] std::string format_fixed(double value, int decimals);

}  // namespace lowtide
