/* Short forms for the tests of the pool. C11 and C++17. */
#ifndef ARENITE_POOL_HELPERS_H
#define ARENITE_POOL_HELPERS_H

#include "helpers.h"

static inline arenite_pool_options_t options(void) {
    arenite_pool_options_t o;
    INIT(o);
    return o;
}

static inline arenite_pool_stats_t stats(const arenite_pool_t *pool) {
    arenite_pool_stats_t s;
    INIT(s);
    CHECK_OK(arenite_pool_stats(pool, &s));
    CHECK_EQ(s.live_bytes + s.free_bytes, s.total_bytes);
    return s;
}

/* A pool of one region that does not grow. */
static inline arenite_pool_t *fixed(size_t bytes) {
    arenite_pool_options_t o = options();
    arenite_pool_t *pool = NULL;
    o.first_region = bytes;
    o.growth = ARENITE_GROWTH_NONE;
    CHECK_OK(arenite_pool_create(&o, &pool, NULL));
    return pool;
}

#endif
