// weights.h - refuses a weight, in the same words for mixtures and for weighted samples.
#pragma once

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lowtide {

// Throws std::invalid_argument: "weights: entry 3 is -1; " and the rule that it breaks.
[[noreturn]] inline void refuse_weight(std::size_t entry, double value, std::string_view rule) {
  std::string text = "nan";  // without a sign
  if (!std::isnan(value)) {
    std::array<char, 32> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    assert(error == std::errc{});
    text.assign(digits.data(), end);
  }
  throw std::invalid_argument("weights: entry " + std::to_string(entry) + " is " + text + "; " +
                              std::string(rule));
}

}  // namespace lowtide
