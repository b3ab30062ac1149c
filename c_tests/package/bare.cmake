# The no_std archive: built without std, linked into a C program that has no other Rust in it, and with nothing of std.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
set(ENV{ARENITE_STRICT} 1)
file(MAKE_DIRECTORY "${WORK}")
run("${CARGO}" rustc --quiet --locked --lib --crate-type staticlib --profile bare --no-default-features --features bare
  --manifest-path "${SOURCE}/Cargo.toml" --target-dir "${WORK}/cargo")
set(archive "${WORK}/cargo/bare/libarenite.a")
run("${CC}" -std=c11 -Wall -Wextra -Wpedantic -Werror "-I${SOURCE}/include" "${SOURCE}/c_tests/package/bare.c" "${archive}" -o "${WORK}/app")
run("${WORK}/app")
message(STATUS "${output}")
# No heap: the archive must not ask for one.
run("${NM}" --undefined-only "${archive}")
if(output MATCHES " U (malloc|free|realloc|__rust_alloc|pthread_[a-z_]+)\n")
  message(FATAL_ERROR "the archive needs ${CMAKE_MATCH_1}")
endif()
