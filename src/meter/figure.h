// figure.h - a measured number, or the reason why it could not be measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lowtide {

// Bytes or a count. An unknown figure carries its reason; it is never 0.
struct Figure {
  std::optional<std::uint64_t> value;
  std::string why;  // only if value is empty: "no permission", "the kernel has no cachestat", ...

  [[nodiscard]] static Figure known(std::uint64_t value) { return {value, {}}; }
  [[nodiscard]] static Figure unknown(std::string why) { return {std::nullopt, std::move(why)}; }
  friend bool operator==(const Figure&, const Figure&) = default;
};

}  // namespace lowtide
