/* Makes one error inside a pool, or none: `errors none|after_free|overrun|underrun`. Run under Valgrind by run.cmake. */
#include "check.h"
#include <arenite.h>

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "none";
    arenite_pool_options_t o;
    arenite_pool_t *pool = NULL;
    void *p = NULL, *q = NULL;
    volatile char *c;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.flags = ARENITE_POOL_SANITIZER | ARENITE_POOL_GUARDS | ARENITE_POOL_POISON;
    o.quarantine_bytes = 4096;
    CHECK_OK(arenite_pool_create(&o, &pool, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 1000, 0, &p, NULL));
    CHECK_OK(arenite_pool_alloc_zeroed(pool, 1000, 4096, &q, NULL));
    CHECK(((const char *)q)[999] == 0);
    CHECK_OK(arenite_pool_realloc(pool, q, 5000, 0, &q, NULL));
    memset(p, 1, 1000);
    memset(q, 1, 5000);
    c = (volatile char *)p;
    if (strcmp(kind, "overrun") == 0) {
        c[1001] = 1;
        return 0;
    }
    if (strcmp(kind, "underrun") == 0) {
        c[-3] = 1;
        return 0;
    }
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    if (strcmp(kind, "after_free") == 0) {
        c[10] = 1;
        return 0;
    }
    CHECK_OK(arenite_pool_free(pool, q, NULL));
    /* Through the quarantine and out again. */
    CHECK_OK(arenite_pool_alloc(pool, 9000, 0, &p, NULL));
    memset(p, 2, 9000);
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
    return DONE();
}
