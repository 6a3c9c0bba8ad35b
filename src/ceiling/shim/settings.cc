#include "ceiling/shim/settings.h"

#include "ceiling/shim/page.h"

namespace lowtide::ceiling {

namespace {

// The value in "name=value"; null if the entry is another variable.
char* value_of(char* entry, const char* name) {
  while (*name != 0) {
    if (*entry++ != *name++) return nullptr;
  }
  return *entry == '=' ? entry + 1 : nullptr;
}

// Removes the first item of LD_PRELOAD, which is ours, because guard puts it there. ld.so separates
// items by colons and spaces. False if nothing is left.
bool cut_first(char* list) {
  char* from = list;
  while (*from != 0 && *from != ':' && *from != ' ') ++from;
  while (*from == ':' || *from == ' ') ++from;
  char* to = list;
  while (*from != 0) *to++ = *from++;
  *to = 0;
  return to != list;
}

// Not checked for overflow: guard has written the number.
std::uint64_t take_number(const char*& text) {
  std::uint64_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    number = number * 10 + static_cast<std::uint64_t>(*text - '0');
  }
  return number;
}

}  // namespace

Settings parse_settings(const char* text) {
  if (text == nullptr) return {};
  Settings settings;
  settings.limit_bytes = take_number(text);
  if (*text++ != ':') return {};
  for (; *text != 0 && *text != ':'; ++text) {
    if (*text == 'd') settings.drop_cache = true;
    if (*text == 'n') settings.only_this = true;
    if (*text == 't') settings.tree = true;
  }
  if (*text++ != ':') return {};
  settings.filters = take_number(text);
  if (*text++ != ':') return {};
  settings.page_number = take_number(text);
  if (*text++ != ':') return {};
  settings.page_path = text;
  return settings;
}

// Edits the array and its strings in place, because nothing here may allocate.
void leave_environment(char** environment) {
  char** to = environment;
  for (char** from = environment; *from != nullptr; ++from) {
    if (value_of(*from, kSettingsVariable) != nullptr) continue;
    char* preload = value_of(*from, kPreloadVariable);
    if (preload != nullptr && !cut_first(preload)) continue;
    *to++ = *from;
  }
  *to = nullptr;
}

}  // namespace lowtide::ceiling
