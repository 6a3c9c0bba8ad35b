#include "lowtide/command/build.h"

#include <algorithm>

#include "chunk_format/chunked_array.h"
#include "core/cpu.h"
#include "format/array_header.h"
#include "format/registry.h"
#include "http/transport.h"
#include "lowtide/version.h"
#include "os/paths.h"
#include "os/ring.h"
#include "system/program.h"
#include "token_format/token_source.h"

namespace lowtide {
namespace {

std::string compiler_name() {
#if defined(__clang__)
  const std::string name = std::string("Clang ") + __clang_version__;
  return name.substr(0, name.find_last_not_of(' ', name.find(" (")) + 1);  // without its sources
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

std::string target_name() {
#if defined(__x86_64__)
  const std::string machine = "x86_64";
#elif defined(__aarch64__)
  const std::string machine = "aarch64";
#else
  const std::string machine = "another processor";
#endif
#if defined(__GLIBC__)
  return machine + ", glibc " + std::to_string(__GLIBC__) + "." + std::to_string(__GLIBC_MINOR__);
#else
  return machine + ", musl";  // it defines no macro, and there is no third C library for Linux here
#endif
}

std::optional<std::string> if_there(const std::string& path) {
  return path_exists(path) ? std::optional(path) : std::nullopt;
}

}  // namespace

const char* version() noexcept {
  return LOWTIDE_VERSION;
}

Build build(const std::optional<std::string>& folder) {
  Build found;
  found.version = version();
  found.compiler = compiler_name();
  found.target = target_name();
  found.io_uring = Ring::built_in();
  found.http = Transport::built_in();
  found.why_no_http = Transport::probe();
#if defined(__x86_64__)
  found.vector_paths = {"avx2", "avx512"};
  if (has_avx2()) found.vector_used = has_avx512() ? "avx512" : "avx2";
#endif
  const std::string program = executable_path();
  const std::string where = folder.value_or(program.substr(0, program.rfind('/')));
  found.command = if_there(where + "/lowtide");
  found.guard = if_there(where + "/../lib/lowtide/liblowtide_guard.so");
  return found;
}

std::vector<std::string> format_words() {
  std::vector<std::string> words;
  for (const auto& some : {array_words(), token_words()}) {
    for (const std::string_view word : some) {
      if (std::ranges::find(words, word) == words.end()) words.emplace_back(word);
    }
  }
  for (const std::string_view word : chunk_words()) words.emplace_back(word);
  return words;
}

std::vector<std::string> output_format_words() {
  std::vector<std::string> words;
  for (const std::string_view word : array_words()) {
    if (can_write_arrays(word)) words.emplace_back(word);
  }
  for (const TokenFormat* const format : token_formats()) {
    if (format->output != nullptr) words.emplace_back(format->word);
  }
  return words;
}

}  // namespace lowtide
