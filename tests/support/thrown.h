// thrown.h - what a call throws, as a value.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <type_traits>

namespace lowtide {

// Its message. If it throws nothing: "no error", or "no error, but " and the text that it returns.
// Other exceptions pass.
template <typename Error = std::exception, typename Call>
[[nodiscard]] std::string thrown(Call call) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
    } else {
      return "no error, but " + call();
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The exception itself.
template <typename Error, typename Call>
[[nodiscard]] std::optional<Error> caught(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace lowtide
