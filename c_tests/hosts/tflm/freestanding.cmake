cmake_minimum_required(VERSION 3.21)
# arenite/tflm.hpp without exceptions, RTTI and a C library asks the linker for two functions of ours and for nothing that
# a microcontroller does not have.
execute_process(
  COMMAND "${CXX}" -std=c++11 -O2 -ffreestanding -nostdlib -fno-exceptions -fno-rtti -fno-threadsafe-statics
    -fno-use-cxa-atexit -fno-stack-protector -Wall -Wextra -Wpedantic -Werror "-I${INCLUDE}" -c "${SOURCE}" -o "${WORK}/freestanding.o"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${NM}" -u "${WORK}/freestanding.o" OUTPUT_VARIABLE undefined COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]+" undefined "${undefined}")
set(allowed arenite_bare_place arenite_bare_place_bytes memset memcpy memmove __cxa_pure_virtual __dso_handle atexit
  _GLOBAL_OFFSET_TABLE_)
foreach(symbol IN LISTS undefined)
  if(NOT symbol IN_LIST allowed)
    message(FATAL_ERROR "the header needs ${symbol}")
  endif()
endforeach()
if(NOT "arenite_bare_place" IN_LIST undefined)
  message(FATAL_ERROR "the object does not use the library: ${undefined}")
endif()
message("needs from outside: ${undefined}")
