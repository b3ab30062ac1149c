# The system libraries that CMake put on the targets are those that rustc named when it built the archive.
file(READ "${FILE}" actual)
string(STRIP "${actual}" actual)
if(NOT actual STREQUAL EXPECTED)
  message(FATAL_ERROR "rustc names `${actual}`, the targets carry `${EXPECTED}`")
endif()
message(STATUS "system libraries: ${actual}")
