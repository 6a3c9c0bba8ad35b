// settings.h - what guard tells the shim, in one variable of the environment.
//
// "LIMIT:FLAGS:FILTERS:NUMBER:PATH": bytes; letters of d (drop the page cache too), n (not the
// children), t (the limit holds for the sum over all processes); the filters of system calls that
// guard itself is under; the number of the shared page, and where it can be opened. No allocation.
#pragma once

#include <cstdint>

namespace lowtide::ceiling {

struct Settings {
  std::uint64_t limit_bytes = 0;  // 0: no settings, do nothing
  bool drop_cache = false;
  bool only_this = false;  // not the programs and children it starts
  bool tree = false;
  std::uint64_t filters = 0;  // those of guard, which the shim can live with; see bare::filters
  std::uint64_t page_number = 0;
  const char* page_path = nullptr;
};

// `text` may be null; must outlive the result. Anything malformed gives limit 0.
[[nodiscard]] Settings parse_settings(const char* text);

// Takes the shim out of an environment (null-terminated, as `environ`), so that programs started
// from here run without it: removes the settings, and the first library of LD_PRELOAD or all of the
// variable when that was the only one. Moves within the array and its texts.
void leave_environment(char** environment);

}  // namespace lowtide::ceiling
