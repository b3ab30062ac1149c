# Packaging as a user meets it: each way in, library kind, generator and compiler, from a project of its own
# (examples/cmake). Included by c_tests/CMakeLists.txt.
set(stage "${CMAKE_CURRENT_BINARY_DIR}/stage")
add_script_test(install install.cmake package "-DBUILD=${PROJECT_BINARY_DIR}" "-DPREFIX=${stage}" "-DSONAME=${arenite_soname}")
set_tests_properties(install PROPERTIES FIXTURES_SETUP installed)

set(generators "Unix Makefiles")
find_program(ARENITE_NINJA ninja)
if(ARENITE_NINJA)
  list(APPEND generators Ninja)
endif()
set(compilers)
foreach(pair IN ITEMS "gcc g++" "clang clang++")
  separate_arguments(pair)
  list(GET pair 0 c)
  list(GET pair 1 cxx)
  find_program(ARENITE_TEST_${c} ${c})
  find_program(ARENITE_TEST_${cxx} ${cxx})
  if(ARENITE_TEST_${c})
    list(APPEND compilers ${c})
    set(cxx_of_${c})
    if(ARENITE_TEST_${cxx})
      set(cxx_of_${c} ${cxx})
    endif()
  else()
    message(STATUS "arenite: consumers are not tested with ${c}, which was not found")
  endif()
endforeach()

# The consumers that build arenite use our cargo directory and find it built; test `rebuild` starts from nothing.
# BR-54 too: the consumer names only arenite::arenite and gets the system libraries in the right order.
foreach(way IN ITEMS add_subdirectory FetchContent find_package)
  foreach(kind IN ITEMS static shared)
    foreach(generator IN LISTS generators)
      foreach(c IN LISTS compilers)
        string(REGEX REPLACE ".* " "" short "${generator}")
        set(name "consumer_${way}_${kind}_${short}_${c}")
        add_script_test(${name} consumer.cmake package
          "-DWAY=${way}" "-DKIND=${kind}" "-DGENERATOR=${generator}" "-DC=${c}" "-DCXX=${cxx_of_${c}}"
          "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DPREFIX=${stage}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumers/${name}"
          "-DCARGO_DIR=${ARENITE_CARGO_TARGET_DIR}" "-DFEATURES=${ARENITE_FEATURES}" "-DSONAME=${arenite_soname}"
          "-DREADELF=${CMAKE_READELF}" "-DVERSION=${PROJECT_VERSION}")
        if(way STREQUAL "find_package")
          set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED installed)
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()

find_program(ARENITE_PKG_CONFIG NAMES pkg-config pkgconf)
foreach(kind IN ITEMS static shared)
  add_script_test(consumer_pkg_config_${kind} pkg_config.cmake package
    "-DKIND=${kind}" "-DPKG_CONFIG=${ARENITE_PKG_CONFIG}" "-DCC=${CMAKE_C_COMPILER}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
    "-DPREFIX=${stage}" "-DLIBDIR=${CMAKE_INSTALL_LIBDIR}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/pkg_config_${kind}"
    "-DSONAME=${arenite_soname}" "-DREADELF=${CMAKE_READELF}")
  set_tests_properties(consumer_pkg_config_${kind} PROPERTIES FIXTURES_REQUIRED installed)
endforeach()

# BR-53: a second Rust archive in the same program.
add_script_test(br_53_second_rust_archive second_archive.cmake package
  "-DRUSTC=${ARENITE_RUSTC}" "-DCC=${CMAKE_C_COMPILER}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
  "-DARCHIVE=${arenite_static_file}" "-DNATIVE=${arenite_native_line}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/second_archive")

# Nothing is rebuilt by a second build, and a touched Rust source is noticed.
add_script_test(rebuild rebuild.cmake package
  "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/rebuild")

# The no_std archive in a C program.
add_script_test(bare bare.cmake package
  "-DCARGO=${ARENITE_CARGO}" "-DCC=${CMAKE_C_COMPILER}" "-DNM=${CMAKE_NM}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
  "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/bare")

add_script_test(readme_example readme.cmake package
  "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/readme")

# Rust without std.
add_script_test(no_std no_std.cmake package
  "-DCARGO=${ARENITE_CARGO}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/no_std")
