# BR-56: the shared library says its own name, with the number of the binary interface.
execute_process(COMMAND "${READELF}" -d "${LIBRARY}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "SONAME[^\n]*\\[${SONAME}\\]")
  message(FATAL_ERROR "no SONAME ${SONAME} in\n${output}")
endif()
message(STATUS "SONAME ${SONAME}")
