# Sets liburing_objects: the target whose objects become part of lowtide, so that neither the library nor
# its headers are installed. Compiled by us and not by its own configure, which tries out the compiler of
# the machine and not that of the target.
lowtide_fetch(liburing 2.3 FILE libu/liburing/liburing_2.3.orig.tar.gz SNAPSHOT 20230701T000000Z
              SHA256 2eac26f880125d83f75ba8641fde5d88226dd352d3cee95d45a9128758a8f1be
              DEBIAN liburing-dev OPTION LOWTIDE_URING LOSS io_uring)

# The one header that its configure writes: types that kernel headers before 5.6 lack.
set(generated ${CMAKE_CURRENT_BINARY_DIR}/liburing)
file(CONFIGURE OUTPUT ${generated}/liburing/compat.h CONTENT [[
#pragma once
#if __has_include(<linux/time_types.h>)
#include <linux/time_types.h>
#else
#include <stdint.h>
struct __kernel_timespec {
  int64_t tv_sec;
  long long tv_nsec;
};
#endif
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#else
#include <stdint.h>
struct open_how {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};
#endif
]])

enable_language(C)
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
set(liburing_objects lowtide_liburing)
set(sources setup.c queue.c register.c syscall.c)
list(TRANSFORM sources PREPEND ${liburing_SOURCE_DIR}/src/)
add_library(lowtide_liburing OBJECT ${sources})
target_include_directories(lowtide_liburing SYSTEM PUBLIC ${generated} ${liburing_SOURCE_DIR}/src/include)
target_compile_definitions(lowtide_liburing PRIVATE _GNU_SOURCE LIBURING_INTERNAL)
target_compile_options(lowtide_liburing PRIVATE -w)
set_target_properties(lowtide_liburing PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11 C_EXTENSIONS ON
                                                  C_VISIBILITY_PRESET hidden)
