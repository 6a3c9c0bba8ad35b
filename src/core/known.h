// known.h - a value that was measured, or the reason why it could not be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lowtide {

// What is not known is never 0.
template <typename T>
struct Known {
  std::optional<T> value;
  std::string why;  // only if value is empty: "no permission", "the kernel has no cachestat", ...

  [[nodiscard]] static Known known(T value) { return {std::move(value), {}}; }
  [[nodiscard]] static Known unknown(std::string why) { return {std::nullopt, std::move(why)}; }
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  friend bool operator==(const Known&, const Known&) = default;
};

using Figure = Known<std::uint64_t>;  // bytes or a count

}  // namespace lowtide
