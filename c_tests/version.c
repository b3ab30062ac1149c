/* The version: header and library agree. */
#include <arenite.h>

#include "check.h"

static void header_and_library_agree(void) {
    char text[64];
    CHECK_EQ(arenite_abi_version(), ARENITE_ABI_VERSION);
    CHECK_TEXT(arenite_version_string(), ARENITE_VERSION_STRING);
    snprintf(text, sizeof text, "%d.%d.%d", ARENITE_VERSION_MAJOR, ARENITE_VERSION_MINOR, ARENITE_VERSION_PATCH);
    CHECK_TEXT(ARENITE_VERSION_STRING, text);
}

static void the_build_system_agrees(void) {
    /* From Cargo.toml and src/ffi/version.rs by way of CMake. */
    CHECK_TEXT(ARENITE_VERSION_STRING, EXPECTED_VERSION);
    CHECK_EQ(ARENITE_ABI_VERSION, EXPECTED_ABI);
}

int main(void) {
    RUN(header_and_library_agree);
    RUN(the_build_system_agrees);
    return DONE();
}
