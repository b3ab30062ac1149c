/* Status codes: fixed numbers, names, and any number accepted. */
#include <arenite.h>

#include "check.h"

static void numbers_never_change(void) {
    CHECK_EQ(ARENITE_OK, 0);
    CHECK_EQ(ARENITE_ERR_NULL, 1);
    CHECK_EQ(ARENITE_ERR_ARGUMENT, 2);
    CHECK_EQ(ARENITE_ERR_OVERFLOW, 3);
    CHECK_EQ(ARENITE_ERR_CAPACITY, 4);
    CHECK_EQ(ARENITE_ERR_ALIGNMENT, 5);
    CHECK_EQ(ARENITE_ERR_BUSY, 6);
    CHECK_EQ(ARENITE_ERR_NO_MEMORY, 7);
    CHECK_EQ(ARENITE_ERR_STALE, 8);
    CHECK_EQ(ARENITE_ERR_UNKNOWN_SIZE, 9);
    CHECK_EQ(ARENITE_ERR_UNSUPPORTED, 10);
    CHECK_EQ(ARENITE_ERR_INTERNAL, 11);
}

static void names_are_those_of_the_macros(void) {
    CHECK_TEXT(arenite_status_name(ARENITE_OK), "ARENITE_OK");
    CHECK_TEXT(arenite_status_name(ARENITE_ERR_NULL), "ARENITE_ERR_NULL");
    CHECK_TEXT(arenite_status_name(ARENITE_ERR_CAPACITY), "ARENITE_ERR_CAPACITY");
    CHECK_TEXT(arenite_status_name(ARENITE_ERR_UNKNOWN_SIZE), "ARENITE_ERR_UNKNOWN_SIZE");
    CHECK_TEXT(arenite_status_name(ARENITE_ERR_INTERNAL), "ARENITE_ERR_INTERNAL");
}

/* BR-58: a number that is no status is no undefined behaviour. */
static void any_number_has_a_name(void) {
    const int32_t numbers[] = {-1, 12, 1000, INT32_MIN, INT32_MAX};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK_TEXT(arenite_status_name(numbers[i]), "ARENITE_ERR_?");
    }
}

int main(void) {
    RUN(numbers_never_change);
    RUN(names_are_those_of_the_macros);
    RUN(any_number_has_a_name);
    return DONE();
}
