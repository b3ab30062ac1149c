# A no_std crate that depends on us builds, with and without alloc, and so does the crate itself with each small feature set.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
# Nothing that is built here runs: the fastest build will do.
set(ENV{CARGO_PROFILE_DEV_OPT_LEVEL} 0)
set(ENV{CARGO_PROFILE_DEV_DEBUG} false)
set(ENV{CARGO_TARGET_DIR} "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
# A copy, so that no lock file appears among the sources.
file(REMOVE_RECURSE "${WORK}/dependant")
file(COPY "${SOURCE}/examples/no_std/" DESTINATION "${WORK}/dependant")
file(READ "${WORK}/dependant/Cargo.toml" manifest)
string(REPLACE "path = \"../..\"" "path = \"${SOURCE}\"" manifest "${manifest}")
file(WRITE "${WORK}/dependant/Cargo.toml" "${manifest}")
run("${CARGO}" build --quiet --manifest-path "${WORK}/dependant/Cargo.toml")
foreach(features IN ITEMS "" alloc std)
  run("${CARGO}" build --quiet --locked --lib --manifest-path "${SOURCE}/Cargo.toml" --no-default-features "--features=${features}")
endforeach()
