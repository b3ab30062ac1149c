# Installs into an empty prefix and looks at what is there.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE files RELATIVE "${PREFIX}" "${PREFIX}/*")
foreach(wanted IN ITEMS "include/arenite\\.h" "/libarenite\\.a" "/libarenite\\.so" "/${SONAME}" "/libarenite\\.so\\.[0-9]+\\.[0-9]+\\.[0-9]+"
    "/cmake/arenite/areniteConfig\\.cmake" "/cmake/arenite/areniteConfigVersion\\.cmake" "/pkgconfig/arenite\\.pc"
    "/pkgconfig/arenite-static\\.pc")
  set(found ${files})
  list(FILTER found INCLUDE REGEX "${wanted}$")
  if(NOT found)
    message(SEND_ERROR "not installed: ${wanted}")
  endif()
endforeach()
message(STATUS "installed: ${files}")
