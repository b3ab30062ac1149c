# The system libraries that CMake put on the targets are those that rustc names when it builds our archive. In a target
# directory of its own, so that the flag does not make cargo build the others again.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
# Nothing that is built here runs: the fastest build will do.
set(ENV{CARGO_PROFILE_DEV_OPT_LEVEL} 0)
set(ENV{CARGO_PROFILE_DEV_DEBUG} false)
set(arguments)
if(FEATURES)
  list(APPEND arguments --features "${FEATURES}")
endif()
if(TARGET)
  list(APPEND arguments --target "${TARGET}")
endif()
set(ENV{CARGO_TERM_COLOR} never)
file(MAKE_DIRECTORY "${WORK}")
run("${CARGO}" rustc --quiet --locked --lib --crate-type staticlib --manifest-path "${SOURCE}/Cargo.toml"
  --target-dir "${WORK}/cargo" ${arguments} -- --print "native-static-libs=${WORK}/libraries.txt")
file(READ "${WORK}/libraries.txt" actual)
string(STRIP "${actual}" actual)
if(NOT actual STREQUAL EXPECTED)
  message(FATAL_ERROR "rustc names `${actual}`, the targets carry `${EXPECTED}`")
endif()
message(STATUS "system libraries: ${actual}")
