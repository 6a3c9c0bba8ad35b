// bytes.h - sizes in bytes, and other numbers, as people write them. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

// Reads "64KiB", "256 MiB", "1.5GiB", "500MB" or "4096". KiB, MiB, GiB, TiB are powers of two;
// KB, MB, GB, TB are powers of ten; "B" or no unit means bytes. Case does not matter, and one space
// is allowed before the unit. The result is rounded down to a whole byte. Throws
// std::invalid_argument for anything else: an empty text, a negative number, less than
// `least_bytes`, NaN, overflow or an unknown unit. "512M" is ambiguous, because some tools read it
// as 2^29 bytes and others as 512,000,000; its message asks which one is meant.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text, std::uint64_t least_bytes = 1);

// The shortest exact spelling, or three digits: 65536 -> "64 KiB", 1500 -> "1.46 KiB", 10 ->
// "10 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// A number with this many decimals and a "." in every locale: (3.14159, 2) -> "3.14".
[[nodiscard]] std::string format_fixed(double value, int decimals);

}  // namespace lowtide
