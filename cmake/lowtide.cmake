# How the rooms are compiled and become one library. The lists of files stay in CMakeLists.txt.

# What every target of ours is compiled with; consumers of the library see none of it.
add_library(lowtide_build INTERFACE)
target_compile_features(lowtide_build INTERFACE cxx_std_20)
target_include_directories(lowtide_build INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_SOURCE_DIR}/src)
target_compile_options(lowtide_build INTERFACE -Wall -Wextra -Wconversion -Wshadow
                                               $<$<BOOL:${LOWTIDE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # As g++, which does not count signs among -Wconversion; check_alone.py holds the library to it.
  # -Wthread-safety checks what core/mutex.h says about locks.
  target_compile_options(lowtide_build INTERFACE -Wno-sign-conversion -Wthread-safety)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in std::string that are not there (its bug 105329).
  target_compile_options(lowtide_build INTERFACE -Wno-restrict)
endif()
if(LOWTIDE_SANITIZE)
  # vptr looks at memory through a pipe: without free descriptors, which a test brings about, it
  # sees errors that are not there. Targets with LOWTIDE_PLAIN are compiled as in every other build.
  # Optimising sanitized code takes half of its compile time, so targets with LOWTIDE_COLD, whose
  # tests take little time, go without.
  set(sanitized -fsanitize=${LOWTIDE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                -fno-omit-frame-pointer -g1 -UNDEBUG
                $<IF:$<BOOL:$<TARGET_PROPERTY:LOWTIDE_COLD>>,-O0,-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # The same bug, where the headers are precompiled.
    list(APPEND sanitized -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  target_compile_options(lowtide_build INTERFACE
                         "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOWTIDE_PLAIN>>>:${sanitized}>")
  target_link_options(lowtide_build INTERFACE -fsanitize=${LOWTIDE_SANITIZE})
  # Each test program contains the whole library: gold links it in half of the time, lld in a quarter.
  include(CheckLinkerFlag)
  foreach(linker IN ITEMS lld gold)
    check_linker_flag(CXX -fuse-ld=${linker} LOWTIDE_LINKER_${linker})
    if(LOWTIDE_LINKER_${linker})
      target_link_options(lowtide_build INTERFACE -fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()

# lowtide_precompiled_options(<target> <scope>): what clang needs for precompiled headers. ccache wants
# them without the time. They contain what their headers instantiate, so that not every file does it.
function(lowtide_precompiled_options target scope)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} ${scope} "SHELL:-Xclang -fno-pch-timestamp"
                                              -fpch-instantiate-templates)
  endif()
endfunction()

# lowtide_precompile(<room>): the standard library, parsed once for all rooms with the same flags, which
# is a quarter of a sanitized build. The first room with these flags makes the header.
set(precompiled algorithm array atomic charconv chrono cmath condition_variable cstddef cstdint cstring deque
                filesystem functional limits map memory mutex optional span stdexcept string string_view
                system_error thread utility variant vector)
function(lowtide_precompile room)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()  # g++ gains little
  endif()
  lowtide_precompiled_options(lowtide_${room} PRIVATE)
  get_target_property(cold lowtide_${room} LOWTIDE_COLD)
  get_target_property(fuzzed lowtide_${room} LOWTIDE_FUZZED)
  set(flags lowtide_precompiled_${cold}_${fuzzed})
  get_property(maker GLOBAL PROPERTY ${flags})
  if(maker)
    target_precompile_headers(lowtide_${room} REUSE_FROM ${maker})
    return()
  endif()
  set_property(GLOBAL PROPERTY ${flags} lowtide_${room})
  list(TRANSFORM precompiled REPLACE "(.+)" "<\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(lowtide_${room} PRIVATE ${headers})
  # For ccache: a sum that is the same in every build.
  file(WRITE ${PROJECT_BINARY_DIR}/CMakeFiles/lowtide_${room}.dir/cmake_pch.hxx.pch.sum
       "${precompiled} ${CMAKE_CXX_COMPILER_VERSION}")
endfunction()

# lowtide_room(<room> <file>...): the sources of src/<room>/ as the object library lowtide_<room>.
function(lowtide_room room)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/${room}/)
  add_library(lowtide_${room} OBJECT ${ARGN})
  target_link_libraries(lowtide_${room} PRIVATE lowtide_build)
  if(LOWTIDE_SANITIZE)
    if(LOWTIDE_FUZZ AND room MATCHES "^(chunk_format|core|format|token_format)$")
      set_target_properties(lowtide_${room} PROPERTIES LOWTIDE_FUZZED ON)
      target_compile_options(lowtide_${room} PRIVATE -fsanitize=fuzzer-no-link)
    elseif(room MATCHES "^(ceiling|chunk_folder|chunk_format|face|format|http|inspect|opener|report|span|system|tier|token_format|verdict)$")
      set_target_properties(lowtide_${room} PROPERTIES LOWTIDE_COLD ON)
    endif()
    lowtide_precompile(${room})
  else()
    # The command leaves out the functions that it does not call. Rooms that look instead of read are
    # compiled for size: nothing in them is hot.
    target_compile_options(lowtide_${room} PRIVATE -ffunction-sections -fdata-sections)
    if(room MATCHES "^(inspect|meter|verdict|report)$")
      target_compile_options(lowtide_${room} PRIVATE -Os)
    endif()
  endif()
  set_target_properties(lowtide_${room} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                                   CXX_EXTENSIONS OFF)
  # Most of a build's time went into parsing the same headers again and again, so several files are
  # compiled as one. tools/check_alone.py checks that each of them also compiles alone.
  set_target_properties(lowtide_${room} PROPERTIES UNITY_BUILD ${LOWTIDE_UNITY}
                                                   UNITY_BUILD_BATCH_SIZE 20)
  if(room STREQUAL "os")
    target_link_libraries(lowtide_os PRIVATE $<TARGET_NAME_IF_EXISTS:Liburing::Liburing>
                                             ${liburing_objects})
  elseif(room STREQUAL "http")
    target_link_libraries(lowtide_http PRIVATE $<TARGET_NAME_IF_EXISTS:CurlHeader::CurlHeader>)
  endif()
endfunction()

# lowtide_embed(<room> <file>...): plain files of src/<room>/web/ as constants of that room: page.css becomes
# kPageCss of <room>/assets.h.
function(lowtide_embed room)
  set(source ${PROJECT_BINARY_DIR}/${room}_assets.cc)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/${room}/web/)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DROOM=${room} -DOUT=${source} -P
            ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(lowtide_${room} PRIVATE ${source})
endfunction()

# lowtide_shim(<file>...): the library that `guard` preloads, from files of src/. It runs inside other
# people's programs: nothing but libc behind it, no sanitizer, no exceptions. It stands in
# lib/lowtide beside the folder of the command, in a build as when installed.
function(lowtide_shim)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/)
  add_library(lowtide_guard MODULE ${ARGN})
  target_compile_features(lowtide_guard PRIVATE cxx_std_20)
  target_include_directories(lowtide_guard PRIVATE ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(
    lowtide_guard PRIVATE -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${LOWTIDE_WERROR}>:-Werror>
                          -O2 -fno-exceptions -fno-rtti -fno-threadsafe-statics
                          -fno-asynchronous-unwind-tables)
  target_link_options(lowtide_guard PRIVATE -Wl,--as-needed -Wl,--no-undefined -Wl,-z,now
                                            -static-libgcc)
  target_link_libraries(lowtide_guard PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(
    lowtide_guard PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
                             CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                             LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/lowtide)
  if(LOWTIDE_PYTHON)
    install(TARGETS lowtide_guard LIBRARY DESTINATION ${SKBUILD_DATA_DIR}/lib/lowtide)
  else()
    install(TARGETS lowtide_guard LIBRARY DESTINATION lib/lowtide)
  endif()
endfunction()

# lowtide_library(ROOMS <room>... HEADERS <file>...): the static library lowtide::lowtide, installed
# with include/lowtide/, a package for find_package(lowtide) and lowtide.pc for pkg-config.
function(lowtide_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "ROOMS;HEADERS")
  list(TRANSFORM arg_ROOMS REPLACE "(.+)" "$<TARGET_OBJECTS:lowtide_\\1>")
  list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/lowtide/)

  if(liburing_objects)
    list(APPEND arg_ROOMS $<TARGET_OBJECTS:${liburing_objects}>)
  endif()
  add_library(lowtide STATIC ${arg_ROOMS})
  add_library(lowtide::lowtide ALIAS lowtide)
  target_compile_features(lowtide PUBLIC cxx_std_20)
  target_sources(lowtide PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include
                                                 FILES ${arg_HEADERS})
  target_link_libraries(lowtide PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  if(Liburing_FOUND)
    target_link_libraries(lowtide PRIVATE Liburing::Liburing)
  endif()
  if(LOWTIDE_SANITIZE)
    target_link_options(lowtide PUBLIC $<BUILD_INTERFACE:-fsanitize=${LOWTIDE_SANITIZE}>)
  endif()
  if(NOT LOWTIDE_PYTHON)  # a wheel holds the module, not the library
    lowtide_install()
  endif()
endfunction()

function(lowtide_install)
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lowtide)
  install(TARGETS lowtide EXPORT lowtide FILE_SET HEADERS)
  install(EXPORT lowtide NAMESPACE lowtide:: FILE lowtideTargets.cmake DESTINATION ${package})
  configure_package_config_file(cmake/lowtideConfig.cmake.in lowtideConfig.cmake
                                INSTALL_DESTINATION ${package})
  write_basic_package_version_file(lowtideConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lowtideConfig.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/lowtideConfigVersion.cmake
                cmake/FindLiburing.cmake DESTINATION ${package})

  # Found beside itself, so that the folder can be moved. The library is static, so its user links what
  # it needs.
  set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pc_up /${pkgconfig} /)
  string(REGEX REPLACE "/$" "" pc_up ${pc_up})
  set(pc_liburing)
  if(Liburing_FOUND)
    set(pc_liburing ${LIBURING_LIBRARY})
  endif()
  configure_file(cmake/lowtide.pc.in lowtide.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lowtide.pc DESTINATION ${pkgconfig})
endfunction()
