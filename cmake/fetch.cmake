# What a build needs and this machine lacks is downloaded, one file with a known hash, or the build fails.
# Nothing is ever left out silently.
include(FetchContent)

# lowtide_fetch(<name> <version> FILE <file> SNAPSHOT <time> SHA256 <hash> DEBIAN <package> OPTION <option>
#               LOSS <text>)
#
# Unpacks the sources of <name> and sets its name in lower case and _SOURCE_DIR. FILE is below pool/main of the Debian archive,
# SNAPSHOT a time at which snapshot.debian.org has it: the archive drops old releases, the snapshots stay.
# The hash makes plain http as good as https, where cmake finds no certificates.
# -DFETCHCONTENT_SOURCE_DIR_<NAME>=<folder> uses sources that are already there.
function(lowtide_fetch name version)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FILE;SNAPSHOT;SHA256;DEBIAN;OPTION;LOSS" "")
  string(TOUPPER ${name} upper)
  string(TOLOWER ${name} lower)
  set(source)
  if(NOT FETCHCONTENT_SOURCE_DIR_${upper})
    lowtide_download(source failure)
    if(failure)
      message(
        FATAL_ERROR
          "lowtide: ${name} is not installed and could not be downloaded:\n${failure}"
          "Do one of these:\n"
          "  install it (Debian: apt-get install ${arg_DEBIAN})\n"
          "  unpack ${name} ${version} and give its folder: -DFETCHCONTENT_SOURCE_DIR_${upper}=FOLDER\n"
          "  build without ${arg_LOSS}: cmake -D${arg_OPTION}=OFF, or\n"
          "    pip install --config-settings=cmake.define.${arg_OPTION}=OFF .\n")
    endif()
    message(STATUS "lowtide: ${name} ${version} from ${source}")
  endif()
  # SOURCE_SUBDIR names no folder, so that the CMakeLists.txt inside is not used.
  FetchContent_Declare(${name} URL ${source} URL_HASH SHA256=${arg_SHA256} SOURCE_SUBDIR none
                       DOWNLOAD_EXTRACT_TIMESTAMP OFF)
  FetchContent_MakeAvailable(${name})
  set(${lower}_SOURCE_DIR ${${lower}_SOURCE_DIR} PARENT_SCOPE)
endfunction()

# Called by lowtide_fetch. FetchContent could download by itself, but its failure cannot be explained.
function(lowtide_download source_out failure_out)
  cmake_path(GET arg_FILE FILENAME file_name)
  set(file ${FETCHCONTENT_BASE_DIR}/${file_name})
  set(${source_out} ${file} PARENT_SCOPE)
  set(${failure_out} "" PARENT_SCOPE)
  if(EXISTS ${file})
    file(SHA256 ${file} found)
    if(found STREQUAL arg_SHA256)
      return()
    endif()
  endif()
  if(FETCHCONTENT_FULLY_DISCONNECTED)
    set(${failure_out} "  FETCHCONTENT_FULLY_DISCONNECTED is on\n" PARENT_SCOPE)
    return()
  endif()
  set(failure)
  foreach(url IN ITEMS https://deb.debian.org/debian http://deb.debian.org/debian
                       https://snapshot.debian.org/archive/debian/${arg_SNAPSHOT})
    string(APPEND url /pool/main/${arg_FILE})
    message(STATUS "lowtide: downloading ${url}")
    file(DOWNLOAD ${url} ${file} STATUS status TIMEOUT 120 INACTIVITY_TIMEOUT 20)
    list(POP_FRONT status code reason)
    string(REPLACE "\"" "" reason "${reason}")
    if(code EQUAL 0)
      file(SHA256 ${file} found)
      if(found STREQUAL arg_SHA256)
        return()
      endif()
      set(reason "its SHA-256 is ${found}, not ${arg_SHA256}")
    endif()
    string(APPEND failure "  ${url}: ${reason}\n")
    file(REMOVE ${file})
  endforeach()
  set(${failure_out} "${failure}" PARENT_SCOPE)
endfunction()
