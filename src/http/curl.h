// curl.h - libcurl, which is loaded when the first object is opened: that of the system, otherwise
// that of the wheel which this code is part of.
//
// It is not linked: the command must start in milliseconds, importing the package must stay cheap,
// and both must work on machines without it. Only files of this room include this header.
#pragma once

#include <curl/curl.h>

#include <string>

namespace lowtide {

struct Curl {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_version_info) version_info = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_setopt) multi_setopt = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_wakeup) multi_wakeup = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  // Only in the libcurl of wheels, which knows no authorities by itself: all connections share
  // those of the file that is named by CURLOPT_SSL_CTX_DATA.
  curl_ssl_ctx_callback trust_file = nullptr;
};

// The library of this process; nullptr with the reason in `why` (which may be nullptr) if there is
// none, or one without TLS or older than 7.88. The first call loads it. Any thread.
[[nodiscard]] const Curl* load_curl(std::string* why);

// The file in which this system keeps the certificates of authorities; empty if none is known.
[[nodiscard]] std::string find_authorities();

}  // namespace lowtide
