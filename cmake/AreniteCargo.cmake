# The cargo rule: one command builds both C libraries. Sets
#   arenite_static_file, arenite_shared_file   the libraries in the build tree
#   arenite_soname                             the name that programs store
#   arenite_native_libraries                   the system libraries that a static link needs
# and makes the target arenite_cargo.
find_program(ARENITE_CARGO cargo HINTS "$ENV{HOME}/.cargo/bin" DOC "cargo")
find_program(ARENITE_RUSTC rustc HINTS "$ENV{HOME}/.cargo/bin" DOC "rustc")
if(NOT ARENITE_CARGO OR NOT ARENITE_RUSTC)
  message(FATAL_ERROR "arenite: cargo and rustc are needed (https://rustup.rs); set ARENITE_CARGO and ARENITE_RUSTC")
endif()

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../src/ffi/version.rs" arenite_abi REGEX "pub const ARENITE_ABI_VERSION")
string(REGEX MATCH "= ([0-9]+)" ignored "${arenite_abi}")
set(arenite_abi "${CMAKE_MATCH_1}")
set(arenite_soname "libarenite.so.${arenite_abi}")

# Debug is cargo's dev profile, everything else release.
set(arenite_profile release)
set(arenite_cargo_args --release)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(arenite_profile debug)
  set(arenite_cargo_args)
endif()
if(ARENITE_FEATURES)
  list(APPEND arenite_cargo_args --features "${ARENITE_FEATURES}")
endif()

set(arenite_output "${ARENITE_CARGO_TARGET_DIR}/${arenite_profile}")
set(arenite_environment ARENITE_STRICT=1)
set(arenite_target_args)
if(NOT arenite_triple)
  # Set for the user's other builds, it would put ours where nobody looks.
  list(PREPEND arenite_environment --unset=CARGO_BUILD_TARGET)
endif()
if(arenite_triple)
  set(arenite_output "${ARENITE_CARGO_TARGET_DIR}/${arenite_triple}/${arenite_profile}")
  set(arenite_target_args --target ${arenite_triple})
  string(TOUPPER "${arenite_triple}" name)
  string(REPLACE "-" "_" name "${name}")
  if(NOT MSVC)
    list(APPEND arenite_environment "CARGO_TARGET_${name}_LINKER=${CMAKE_C_COMPILER}")
  endif()
endif()

set(shared_name "${CMAKE_SHARED_LIBRARY_PREFIX}arenite${CMAKE_SHARED_LIBRARY_SUFFIX}")
set(static_name "${CMAKE_STATIC_LIBRARY_PREFIX}arenite${CMAKE_STATIC_LIBRARY_SUFFIX}")
set(arenite_shared_file "${arenite_output}/${shared_name}")
set(arenite_static_file "${arenite_output}/${static_name}")
# The shared library first: it is the one that cargo's libarenite.d names, and Ninja compares the two.
set(arenite_outputs "${arenite_shared_file}" "${arenite_static_file}")

# rustc sets no SONAME, and without one a program would store the path of the build tree.
set(arenite_rustc_args)
set(arenite_link_command)
if(UNIX AND NOT APPLE)
  list(APPEND arenite_rustc_args -C "link-arg=-Wl,-soname,${arenite_soname}")
  list(APPEND arenite_outputs "${arenite_output}/${arenite_soname}")
  set(arenite_link_command
    COMMAND "${CMAKE_COMMAND}" -E create_symlink "${shared_name}" "${arenite_output}/${arenite_soname}")
elseif(APPLE)
  list(APPEND arenite_rustc_args -C "link-arg=-Wl,-install_name,@rpath/${shared_name}")
endif()

# What std needs from the system does not depend on our code, so an empty crate tells it at configure time; a test
# compares the answer with that of the real build.
set(probe "${CMAKE_CURRENT_BINARY_DIR}/native")
file(MAKE_DIRECTORY "${probe}" "${arenite_output}")
file(WRITE "${probe}/empty.rs" "")
execute_process(
  COMMAND "${ARENITE_RUSTC}" ${arenite_target_args} --crate-type staticlib --print native-static-libs
    -o "${probe}/empty.a" "${probe}/empty.rs"
  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed OR NOT output MATCHES "native-static-libs: ([^\n\r]*)")
  message(FATAL_ERROR "arenite: rustc does not name the system libraries it needs:\n${output}")
endif()
string(STRIP "${CMAKE_MATCH_1}" arenite_native_line)
separate_arguments(native NATIVE_COMMAND "${arenite_native_line}")
set(arenite_native_libraries)
foreach(library IN LISTS native)
  string(REGEX REPLACE "^-l" "" library "${library}")
  # The C runtime is the consumer's choice.
  if(NOT library MATCHES "msvcrt|^/defaultlib" AND NOT library IN_LIST arenite_native_libraries)
    list(APPEND arenite_native_libraries "${library}")
  endif()
endforeach()

# cargo writes libarenite.d with every source it read, so a touched source rebuilds and a second build does nothing. The
# outputs are touched because cargo leaves them alone when it finds nothing to do, and they would look old for ever.
add_custom_command(
  OUTPUT ${arenite_outputs}
  COMMAND "${CMAKE_COMMAND}" -E env ${arenite_environment}
    "${ARENITE_CARGO}" rustc --quiet --locked --lib --crate-type staticlib --crate-type cdylib
    --manifest-path "${PROJECT_SOURCE_DIR}/Cargo.toml" --target-dir "${ARENITE_CARGO_TARGET_DIR}"
    ${arenite_target_args} ${arenite_cargo_args} -- ${arenite_rustc_args}
  ${arenite_link_command}
  COMMAND "${CMAKE_COMMAND}" -E touch_nocreate "${arenite_static_file}" "${arenite_shared_file}"
  DEPENDS "${PROJECT_SOURCE_DIR}/Cargo.toml" "${PROJECT_SOURCE_DIR}/Cargo.lock"
  DEPFILE "${arenite_output}/libarenite.d"
  COMMENT "cargo: arenite ${PROJECT_VERSION} (${arenite_profile})"
  VERBATIM)
add_custom_target(arenite_cargo DEPENDS ${arenite_outputs})
