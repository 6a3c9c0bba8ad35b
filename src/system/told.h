// told.h - a value that the kernel reported, or the reason why it did not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lowtide {

template <typename T>
struct Told {
  std::optional<T> value;
  std::string why;  // only if value is empty

  [[nodiscard]] static Told known(T value) { return {std::move(value), {}}; }
  [[nodiscard]] static Told unknown(std::string why) { return {std::nullopt, std::move(why)}; }
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
};

using ToldBytes = Told<std::uint64_t>;

}  // namespace lowtide
