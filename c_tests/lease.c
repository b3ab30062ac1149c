/* Leases: K areas for N instances. */
#include "check.h"
#include <arenite.h>

static void k_areas_serve_n_instances(void) {
    arenite_pool_t *pool = NULL;
    arenite_lease_t *lease = NULL;
    arenite_lease_stats_t s;
    void *a = NULL, *b = NULL, *c = NULL;
    int i;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_OK(arenite_lease_create(pool, 10000, 256, 2, &lease, NULL));
    for (i = 0; i < 100; i++) {
        CHECK_OK(arenite_lease_acquire(lease, 0, &a, NULL));
        CHECK_OK(arenite_lease_acquire(lease, 1, &b, NULL));
        CHECK(a != b);
        CHECK_EQ((uintptr_t)a % 256, 0);
        memset(a, 1, 10000);
        memset(b, 2, 10000);
        CHECK_STATUS(arenite_lease_acquire(lease, 0, &c, NULL), ARENITE_ERR_BUSY);
        CHECK_STATUS(arenite_lease_destroy(lease), ARENITE_ERR_BUSY);
        CHECK_OK(arenite_lease_return(lease, b));
        CHECK_STATUS(arenite_lease_return(lease, b), ARENITE_ERR_ARGUMENT);
        CHECK_OK(arenite_lease_return(lease, a));
    }
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    CHECK_OK(arenite_lease_stats(lease, &s));
    CHECK_EQ(s.areas, 2);
    CHECK_EQ(s.peak, 2);
    CHECK_EQ(s.leases, 200);
    CHECK_EQ(s.refused, 100);
    CHECK_OK(arenite_lease_trim(lease, 0));
    CHECK_OK(arenite_lease_stats(lease, &s));
    CHECK_EQ(s.areas, 0);
    CHECK_OK(arenite_lease_destroy(lease));
    CHECK_OK(arenite_lease_destroy(NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void misuse_is_refused(void) {
    arenite_pool_t *pool = NULL;
    arenite_lease_t *lease = NULL;
    void *a = NULL;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_STATUS(arenite_lease_create(NULL, 1, 0, 1, &lease, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_create(pool, 1, 0, 0, &lease, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_lease_create(pool, 1, 3, 1, &lease, NULL), ARENITE_ERR_ALIGNMENT);
    CHECK_STATUS(arenite_lease_acquire(NULL, 0, &a, NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_lease_create(pool, SIZE_MAX, 0, 1, &lease, NULL));
    CHECK(arenite_lease_acquire(lease, 1, &a, NULL) != ARENITE_OK);
    CHECK_STATUS(arenite_lease_return(lease, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_return(lease, &a), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_lease_destroy(lease));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

int main(void) {
    RUN(k_areas_serve_n_instances);
    RUN(misuse_is_refused);
    return DONE();
}
