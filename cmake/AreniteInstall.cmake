# Install rules: libraries, header, CMake package, pkg-config files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The libraries are built by a custom target that nothing else may depend on.
add_custom_target(arenite_all ALL DEPENDS ${arenite_outputs})
add_dependencies(arenite_all arenite_cargo)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES "${arenite_static_file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(UNIX AND NOT APPLE)
  # libarenite.so -> libarenite.so.0 -> libarenite.so.0.1.0
  set(arenite_shared_installed "libarenite.so.${PROJECT_VERSION}")
  set(links "${CMAKE_CURRENT_BINARY_DIR}/links")
  file(MAKE_DIRECTORY "${links}")
  file(CREATE_LINK "${arenite_shared_installed}" "${links}/${arenite_soname}" SYMBOLIC)
  file(CREATE_LINK "${arenite_soname}" "${links}/libarenite.so" SYMBOLIC)
  install(PROGRAMS "${arenite_shared_file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${arenite_shared_installed}")
  install(FILES "${links}/${arenite_soname}" "${links}/libarenite.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
else()
  get_filename_component(arenite_shared_installed "${arenite_shared_file}" NAME)
  install(PROGRAMS "${arenite_shared_file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
get_filename_component(arenite_static_installed "${arenite_static_file}" NAME)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/arenite")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/areniteConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/areniteConfig.cmake" INSTALL_DESTINATION "${package}"
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# While the version is 0.x, another minor version is another interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/areniteConfigVersion.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/areniteConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/areniteConfigVersion.cmake" DESTINATION "${package}")

# The .pc files name the prefix relative to themselves, so a moved installation still works.
file(RELATIVE_PATH arenite_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" arenite_up "${arenite_up}")
set(arenite_private_libs "${arenite_native_line}")
foreach(name arenite arenite-static)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
