# The targets of the build tree; areniteConfig.cmake.in makes the same ones for an installed package.
set(arenite_include "${PROJECT_SOURCE_DIR}/include")

add_library(arenite::arenite_static STATIC IMPORTED GLOBAL)
set_target_properties(arenite::arenite_static PROPERTIES
  IMPORTED_LOCATION "${arenite_static_file}"
  INTERFACE_INCLUDE_DIRECTORIES "${arenite_include}"
  # As a property and not as flags, so that they come after the archive.
  INTERFACE_LINK_LIBRARIES "${arenite_native_libraries}")
add_dependencies(arenite::arenite_static arenite_cargo)

add_library(arenite::arenite_shared SHARED IMPORTED GLOBAL)
set_target_properties(arenite::arenite_shared PROPERTIES
  IMPORTED_LOCATION "${arenite_shared_file}"
  INTERFACE_INCLUDE_DIRECTORIES "${arenite_include}")
if(WIN32)
  set_target_properties(arenite::arenite_shared PROPERTIES IMPORTED_IMPLIB "${arenite_shared_file}.lib")
elseif(NOT APPLE)
  set_target_properties(arenite::arenite_shared PROPERTIES IMPORTED_SONAME "${arenite_soname}")
endif()
add_dependencies(arenite::arenite_shared arenite_cargo)

if(BUILD_SHARED_LIBS)
  add_library(arenite::arenite ALIAS arenite::arenite_shared)
else()
  add_library(arenite::arenite ALIAS arenite::arenite_static)
endif()
