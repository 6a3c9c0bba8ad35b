#include "http/curl.h"

#include <dlfcn.h>

#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "os/paths.h"
#include "os/sys.h"

namespace lowtide {
namespace {

constexpr unsigned kLeastVersion = 0x075800;  // 7.88
// Debian's with OpenSSL and with GnuTLS; other distributions call theirs like the first.
constexpr const char* kOfSystem[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
constexpr const char* kInWheel = "lib/lowtide/liblowtide_curl.so";
// Debian, Alpine and Arch; Fedora and RHEL; openSUSE; older RHEL; others.
constexpr const char* kAuthorities[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem"};

// Where a wheel has put its libcurl: below the environment of the module, which is in
// lib/pythonX.Y/site-packages/lowtide (in lowtide itself after pip install --target), or of the
// command, which is in bin. Other places are not tried: somebody else might write there. Empty if
// this process cannot tell.
std::string wheel_library() {
  namespace fs = std::filesystem;
  Dl_info about{};
  fs::path self;
  if (::dladdr(kOfSystem, &about) != 0 && about.dli_fname != nullptr) self = about.dli_fname;
  if (self.parent_path().parent_path().filename().string().ends_with("-packages")) {
    return self.parent_path() / "../../../.." / kInWheel;
  }
  // A program has the name by which it was called, which may be a link or without a folder.
  std::error_code failed;
  self = fs::canonical(self.is_absolute() ? self : "/proc/self/exe", failed);
  return failed ? fs::path() : self.parent_path() / ".." / kInWheel;
}

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

Loaded use(void* library) {
  Loaded loaded;
  if (!find_functions(library, &loaded.curl)) {
    loaded.why = "the libcurl of this machine is older than 7.88";
    return loaded;
  }
  if (loaded.curl.global_init(CURL_GLOBAL_ALL) != CURLE_OK) {
    loaded.why = "libcurl could not be initialised";
    return loaded;
  }
  (void)find_function(library, "lowtide_trust_file", &loaded.curl.trust_file);
  const curl_version_info_data* const about = loaded.curl.version_info(CURLVERSION_NOW);
  if (about->version_num < kLeastVersion) {
    loaded.why = std::string("libcurl ") + about->version + " is older than 7.88";
  } else if ((about->features & CURL_VERSION_SSL) == 0) {
    loaded.why = std::string("libcurl ") + about->version + " has no TLS";
  }
  return loaded;
}

// The system's first: it is kept up to date, and its TLS is ten times as fast.
Loaded load() {
  Loaded loaded{.curl = {},
                .why = "libcurl.so.4 is not installed (Debian: apt-get install libcurl4)"};
  std::vector<std::string> names(std::begin(kOfSystem), std::end(kOfSystem));
  if (const std::string in_wheel = wheel_library(); !in_wheel.empty()) names.push_back(in_wheel);
  for (const std::string& name : names) {
    void* const library = sys::table.dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    loaded = use(library);
    if (loaded.why.empty()) break;
  }
  return loaded;
}

}  // namespace

const Curl* load_curl(std::string* why) {
  static const Loaded loaded = load();
  if (!loaded.why.empty() && why != nullptr) *why = loaded.why;
  return loaded.why.empty() ? &loaded.curl : nullptr;
}

std::string find_authorities() {
  for (const char* const file : kAuthorities) {
    if (path_exists(file)) return file;
  }
  return "";
}

}  // namespace lowtide
