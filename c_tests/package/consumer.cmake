# One consumer: configure, build and run examples/cmake in one way, with one generator and compiler.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
set(shared OFF)
if(KIND STREQUAL "shared")
  set(shared ON)
endif()
file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}/examples/cmake" -B "${WORK}"
  "-DCMAKE_C_COMPILER=${C}" "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Release "-DBUILD_SHARED_LIBS=${shared}"
  "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror" "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror"
  -DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON # or the warnings of arenite.h would be suppressed
  "-DARENITE_FROM=${WAY}" "-DARENITE_DIR=${SOURCE}" "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DARENITE_CARGO_TARGET_DIR=${CARGO_DIR}"
  "-DARENITE_FEATURES=${FEATURES}")
run("${CMAKE_COMMAND}" --build "${WORK}")
set(programs app_c)
if(CXX)
  list(APPEND programs app_cxx)
endif()
foreach(program IN LISTS programs)
  run("${WORK}/${program}")
  if(NOT output MATCHES "arenite ${VERSION}")
    message(FATAL_ERROR "${program} says: ${output}")
  endif()
  if(shared)
    check_needed("${WORK}/${program}")
  else()
    run("${READELF}" -d "${WORK}/${program}")
    if(output MATCHES "libarenite")
      message(FATAL_ERROR "${program} was to be static:\n${output}")
    endif()
  endif()
endforeach()
