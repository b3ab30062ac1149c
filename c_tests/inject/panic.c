/*
 * BR-57: a bug in the library does not take the program down. Built only with the feature `inject-panic`, which adds
 * arenite_inject_panic(n): the n-th guarded call from now on panics inside the guard. Every guarded function has a line
 * here; a handle's functions must then refuse, its _last_failure answer and its _destroy work.
 */
#include <arenite.h>

#include "check.h"

#ifdef __cplusplus
extern "C"
#endif
void arenite_inject_panic(uint32_t nth);

/* The call after the injection returns INTERNAL, and what comes next is not affected. */
#define PANICS(call)                                   \
    do {                                               \
        arenite_inject_panic(1);                       \
        CHECK_STATUS(call, ARENITE_ERR_INTERNAL);      \
    } while (0)

static void a_call_without_a_handle_recovers(void) {
    PANICS(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
}

static void the_nth_call_is_hit(void) {
    arenite_inject_panic(3);
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)), ARENITE_ERR_INTERNAL);
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
}

int main(void) {
    RUN(a_call_without_a_handle_recovers);
    RUN(the_nth_call_is_hit);
    return DONE();
}
