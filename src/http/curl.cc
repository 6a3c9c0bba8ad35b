#include "http/curl.h"

#include <dlfcn.h>

#include <mutex>

#include "os/sys.h"

namespace lowtide {
namespace {

constexpr unsigned kLeastVersion = 0x075800;  // 7.88
// Debian's with OpenSSL and with GnuTLS; other distributions call theirs like the first.
constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

template <typename Function>
bool find_function(void* library, const char* name, Function* into) {
  *into = reinterpret_cast<Function>(sys::table.dlsym(library, name));
  return *into != nullptr;
}

bool find_functions(void* library, Curl* into) {
  return find_function(library, "curl_global_init", &into->global_init) &&
         find_function(library, "curl_version_info", &into->version_info) &&
         find_function(library, "curl_easy_init", &into->easy_init) &&
         find_function(library, "curl_easy_cleanup", &into->easy_cleanup) &&
         find_function(library, "curl_easy_reset", &into->easy_reset) &&
         find_function(library, "curl_easy_setopt", &into->easy_setopt) &&
         find_function(library, "curl_slist_append", &into->slist_append) &&
         find_function(library, "curl_slist_free_all", &into->slist_free_all) &&
         find_function(library, "curl_multi_init", &into->multi_init) &&
         find_function(library, "curl_multi_cleanup", &into->multi_cleanup) &&
         find_function(library, "curl_multi_setopt", &into->multi_setopt) &&
         find_function(library, "curl_multi_add_handle", &into->multi_add_handle) &&
         find_function(library, "curl_multi_remove_handle", &into->multi_remove_handle) &&
         find_function(library, "curl_multi_perform", &into->multi_perform) &&
         find_function(library, "curl_multi_poll", &into->multi_poll) &&
         find_function(library, "curl_multi_wakeup", &into->multi_wakeup) &&
         find_function(library, "curl_multi_info_read", &into->multi_info_read);
}

struct Loaded {
  Curl curl;
  std::string why;  // empty: it can be used
};

Loaded load() {
  Loaded loaded;
  void* library = nullptr;
  for (const char* const name : kNames) {
    library = sys::table.dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    loaded.why = "libcurl.so.4 is not installed (Debian: apt-get install libcurl4)";
  } else if (!find_functions(library, &loaded.curl)) {
    loaded.why = "the libcurl of this machine is older than 7.88";
  } else if (loaded.curl.global_init(CURL_GLOBAL_ALL) != CURLE_OK) {
    loaded.why = "libcurl could not be initialised";
  } else {
    const curl_version_info_data* const about = loaded.curl.version_info(CURLVERSION_NOW);
    if (about->version_num < kLeastVersion) {
      loaded.why = std::string("libcurl ") + about->version + " is older than 7.88";
    } else if ((about->features & CURL_VERSION_SSL) == 0) {
      loaded.why = std::string("libcurl ") + about->version + " has no TLS";
    }
  }
  return loaded;
}

}  // namespace

const Curl* load_curl(std::string* why) {
  static const Loaded loaded = load();
  if (!loaded.why.empty() && why != nullptr) *why = loaded.why;
  return loaded.why.empty() ? &loaded.curl : nullptr;
}

}  // namespace lowtide
