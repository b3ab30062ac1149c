# The preload libraries: each a target that is only built when named, and installed with -DARENITE_INSTALL_SHIMS=ON.
#
#   cmake --build build --target arenite_malloc
option(ARENITE_INSTALL_SHIMS "Build and install the preload libraries (Linux)" OFF)

if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  foreach(shim IN ITEMS malloc tflite)
    set(directory "${CMAKE_CURRENT_BINARY_DIR}/shims")
    set(file "${directory}/release/libarenite_${shim}.so")
    set(all)
    if(ARENITE_INSTALL AND ARENITE_INSTALL_SHIMS)
      set(all ALL)
      include(GNUInstallDirs)
      install(PROGRAMS "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    endif()
    add_custom_target(arenite_${shim} ${all}
      COMMAND "${ARENITE_CARGO}" build --release --locked
        --manifest-path "${PROJECT_SOURCE_DIR}/shims/${shim}/Cargo.toml" --target-dir "${directory}"
      BYPRODUCTS "${file}"
      COMMENT "cargo: libarenite_${shim}.so"
      USES_TERMINAL VERBATIM)
  endforeach()
endif()
