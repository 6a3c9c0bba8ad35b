# Finds the static liburing: Liburing::Liburing. Static, so that neither a wheel nor a program built on
# lowtide asks for a liburing.so of the right version where it runs.
find_path(LIBURING_INCLUDE_DIR liburing.h)
find_library(LIBURING_LIBRARY liburing.a)
mark_as_advanced(LIBURING_INCLUDE_DIR LIBURING_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Liburing REQUIRED_VARS LIBURING_LIBRARY LIBURING_INCLUDE_DIR)

if(Liburing_FOUND AND NOT TARGET Liburing::Liburing)
  add_library(Liburing::Liburing STATIC IMPORTED)
  set_target_properties(Liburing::Liburing PROPERTIES
    IMPORTED_LOCATION ${LIBURING_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LIBURING_INCLUDE_DIR})
endif()
