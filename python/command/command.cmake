# In a Python package, the command is a function of the module lowtide._core, and the program `lowtide` is
# a small launcher: see launcher.cc.
string(REPLACE . _ entry lowtide_main_${PROJECT_VERSION})
set(LOWTIDE_ENTRY ${entry} CACHE INTERNAL "The name of the command in the module")

add_executable(lowtide_command ${CMAKE_CURRENT_LIST_DIR}/launcher.cc)
target_compile_features(lowtide_command PRIVATE cxx_std_20)
target_compile_definitions(lowtide_command PRIVATE LOWTIDE_MODULE="$<TARGET_FILE_NAME:_core>"
                                                   LOWTIDE_ENTRY="${LOWTIDE_ENTRY}"
                                                   LOWTIDE_VERSION="${PROJECT_VERSION}")
target_compile_options(lowtide_command PRIVATE -Wall -Wextra -Wconversion -Wshadow
                                               $<$<BOOL:${LOWTIDE_WERROR}>:-Werror> -Os -fno-exceptions -fno-rtti)
target_link_libraries(lowtide_command PRIVATE ${CMAKE_DL_LIBS})
target_link_options(lowtide_command PRIVATE LINKER:--as-needed LINKER:--gc-sections)

# The build folder looks like an installed package, so that the launcher finds the module in both.
set_target_properties(lowtide_command PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_dependencies(lowtide_command _core)

# Beside python itself, so that pip puts it on PATH. A wheel is stripped.
add_custom_command(TARGET lowtide_command POST_BUILD VERBATIM
                   COMMAND ${CMAKE_STRIP} $<TARGET_FILE:lowtide_command>)
install(PROGRAMS $<TARGET_FILE:lowtide_command> DESTINATION ${SKBUILD_SCRIPTS_DIR})

# lowtide_command_in(<module>): makes the command a part of the module, and lets programs without Python
# load it.
function(lowtide_command_in module)
  target_sources(${module} PRIVATE ${PROJECT_SOURCE_DIR}/python/command/entry.cc)
  target_include_directories(${module} PRIVATE ${PROJECT_SOURCE_DIR}/cli)
  target_compile_definitions(${module} PRIVATE LOWTIDE_ENTRY=${LOWTIDE_ENTRY})
  target_link_libraries(${module} PRIVATE lowtide_cli)
  set_target_properties(${module} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lowtide)
  add_custom_command(
    TARGET ${module} POST_BUILD VERBATIM
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/command/weaken.py $<TARGET_FILE:${module}>)
endfunction()
