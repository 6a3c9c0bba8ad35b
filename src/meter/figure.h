// figure.h - a number that was measured, or the reason why it was not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lowtide {

// Bytes or a count. What could not be measured is unknown and says why; it is never 0.
struct Figure {
  std::optional<std::uint64_t> value;
  std::string
      why;  // only where value is empty: "no permission", "the kernel has no cachestat", ...

  [[nodiscard]] static Figure known(std::uint64_t value) { return {value, {}}; }
  [[nodiscard]] static Figure unknown(std::string why) { return {std::nullopt, std::move(why)}; }
  friend bool operator==(const Figure&, const Figure&) = default;
};

}  // namespace lowtide
