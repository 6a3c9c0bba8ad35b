# Finds curl/curl.h of 7.88 or later: CurlHeader::CurlHeader, without the library.
find_path(CURL_HEADER_DIR curl/curl.h)
mark_as_advanced(CURL_HEADER_DIR)
set(CurlHeader_VERSION)
if(CURL_HEADER_DIR)
  file(STRINGS ${CURL_HEADER_DIR}/curl/curlver.h version_line REGEX "define LIBCURL_VERSION \"")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" CurlHeader_VERSION "${version_line}")
endif()

include(FindPackageHandleStandardArgs)
set(CurlHeader_FIND_VERSION 7.88)
set(CurlHeader_FIND_VERSION_COUNT 2)
find_package_handle_standard_args(CurlHeader REQUIRED_VARS CURL_HEADER_DIR VERSION_VAR CurlHeader_VERSION)

if(CurlHeader_FOUND AND NOT TARGET CurlHeader::CurlHeader)
  # A copy, which is the same for every machine: the folder that it is in has headers of libc as well,
  # which a compiler for another machine must not see.
  file(COPY ${CURL_HEADER_DIR}/curl DESTINATION ${CMAKE_CURRENT_BINARY_DIR}/curl_header)
  add_library(CurlHeader::CurlHeader INTERFACE IMPORTED)
  set_target_properties(CurlHeader::CurlHeader PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                          ${CMAKE_CURRENT_BINARY_DIR}/curl_header)
endif()
