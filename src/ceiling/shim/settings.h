// settings.h - guard's settings for the shim, passed in one environment variable.
//
// "LIMIT:FLAGS:FILTERS:NUMBER:PATH": the limit in bytes; the letters d (also drop the page cache),
// n (not the children) and t (the limit applies to the sum over all processes); the number of
// seccomp filters that guard itself runs under; the number of the shared page, and its path.
// Nothing allocates.
#pragma once

#include <cstdint>

namespace lowtide::ceiling {

struct Settings {
  std::uint64_t limit_bytes = 0;  // 0: no settings, do nothing
  bool drop_cache = false;
  bool only_this = false;  // not the programs and children it starts
  bool tree = false;
  std::uint64_t filters = 0;  // guard's own, under which the shim works; see bare::filters
  std::uint64_t page_number = 0;
  const char* page_path = nullptr;
};

// `text` may be null and must outlive the result. Malformed text gives limit 0.
[[nodiscard]] Settings parse_settings(const char* text);

// Removes the shim from an environment (null-terminated, like `environ`), so that programs started
// from here run without it: deletes the settings and the first library of LD_PRELOAD, or the whole
// variable if that was its only library. Works within the array and its strings.
void leave_environment(char** environment);

}  // namespace lowtide::ceiling
