/* For posix_memalign, which C11 alone does not declare. */
#ifndef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
/* The pool: life cycle, options, misuse, growth, resize, debug, threads. */
#include "pool_helpers.h"

#ifndef _WIN32
#include <pthread.h>
#endif

static void blocks_come_and_go(void) {
    arenite_pool_t *pool = NULL;
    void *a = NULL, *b = NULL;
    size_t usable = 0, good = 0;
    uint32_t owns = 0;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 1000, 0, &a, NULL));
    CHECK_EQ((uintptr_t)a % 128, 0);
    CHECK_OK(arenite_pool_alloc(pool, 5, 4096, &b, NULL));
    CHECK_EQ((uintptr_t)b % 4096, 0);
    memset(a, 1, 1000);
    CHECK_OK(arenite_pool_usable_size(pool, a, &usable));
    CHECK_EQ(usable, 1024);
    CHECK_OK(arenite_pool_good_size(pool, 1000, &good));
    CHECK_EQ(good, 1024);
    CHECK_OK(arenite_pool_owns(pool, (char *)a + 100, &owns));
    CHECK_EQ(owns, 1);
    CHECK_OK(arenite_pool_owns(pool, &owns, &owns));
    CHECK_EQ(owns, 0);
    CHECK_EQ(stats(pool).requested_bytes, 1005);
    CHECK_OK(arenite_pool_free_sized(pool, b, 5, NULL));
    CHECK_OK(arenite_pool_free(pool, a, NULL));
    CHECK_OK(arenite_pool_free(pool, NULL, NULL));
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_OK(arenite_pool_trim(pool, 0, NULL));
    CHECK_EQ(stats(pool).reserved_bytes, 0);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

/* BR-40 */
static void a_pool_in_use_is_not_destroyed(void) {
    arenite_pool_t *pool = fixed(1 << 16), *other = fixed(1 << 16);
    arenite_failure_t f = no_failure();
    void *a = NULL, *b = NULL, *c = NULL;
    CHECK_OK(arenite_pool_alloc(pool, 1, 0, &a, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 1, 0, &b, NULL));
    CHECK_OK(arenite_pool_alloc(other, 1, 0, &c, NULL));
    CHECK_STATUS(arenite_pool_destroy(pool, &f), ARENITE_ERR_BUSY);
    CHECK_EQ(f.needed, 2);
    CHECK_STATUS(arenite_pool_free(pool, c, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_free(pool, (char *)a + 1, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_free(pool, a, NULL));
    CHECK_STATUS(arenite_pool_free(pool, a, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_free_sized(pool, b, 2, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_free(pool, b, NULL));
    CHECK_EQ(stats(pool).bad_pointers, 4);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
    CHECK_OK(arenite_pool_free(other, c, NULL));
    CHECK_OK(arenite_pool_destroy(other, NULL));
    CHECK_OK(arenite_pool_destroy(NULL, NULL));
}

/* BR-23, BR-24 */
static void the_misuse_grid_is_refused(void) {
    static const size_t alignments[] = {3, 12, 129, SIZE_MAX, (SIZE_MAX >> 1) + 1};
    arenite_pool_t *pool = fixed(4096);
    arenite_failure_t f = no_failure();
    void *p = &f;
    size_t k;
    for (k = 0; k < 4096; k++) {
        CHECK_STATUS(arenite_pool_alloc(pool, SIZE_MAX - k, 0, &p, NULL), ARENITE_ERR_CAPACITY);
    }
    CHECK_STATUS(arenite_pool_alloc(pool, SIZE_MAX / 2 + 1, 0, &p, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_alloc(pool, 4097, 0, &p, &f), ARENITE_ERR_CAPACITY);
    CHECK_EQ(f.needed, 4097);
    CHECK_EQ(f.available, 4096);
    for (k = 0; k < sizeof alignments / sizeof *alignments; k++) {
        CHECK(arenite_pool_alloc(pool, 1, alignments[k], &p, NULL) != ARENITE_OK);
    }
    CHECK(p == &f);
    CHECK_STATUS(arenite_pool_alloc(NULL, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc(pool, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc_zeroed(pool, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_realloc(pool, NULL, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_realloc(pool, &k, 1, 0, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_free(pool, &k, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_usable_size(pool, &k, &k), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_usable_size(pool, NULL, &k), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc_hint(pool, 1, 0, 0, 9, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_create(NULL, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_walk(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_lend(pool, NULL, 1000, NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_pool_alloc(pool, 0, 0, &p, NULL));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void bad_options_are_refused(void) {
    arenite_pool_t *pool = NULL;
    arenite_pool_options_t o = options();
    o.growth = 9;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_ARGUMENT);
    o = options();
    o.fallback = 9;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_ARGUMENT);
    o = options();
    o.fallback = ARENITE_FALLBACK_POOL;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_NULL);
    o = options();
    o.tail = 9;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_ARGUMENT);
    o = options();
    o.flags = 1u << 31;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_ARGUMENT);
    o = options();
    o.source.kind = ARENITE_SOURCE_CALLBACKS;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_NULL);
    o.source.kind = ARENITE_SOURCE_BUFFER;
    CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_NULL);
    CHECK(pool == NULL);
}

static void a_buffer_at_any_base(void) {
    static char buffer[8192];
    size_t shift;
    for (shift = 0; shift < 300; shift++) {
        arenite_pool_options_t o = options();
        arenite_pool_t *pool = NULL;
        void *p = NULL, *q = NULL;
        size_t all;
        o.source.kind = ARENITE_SOURCE_BUFFER;
        o.source.base = buffer + shift;
        o.source.bytes = sizeof buffer - shift;
        CHECK_OK(arenite_pool_create(&o, &pool, NULL));
        all = (size_t)stats(pool).largest_free;
        CHECK_OK(arenite_pool_alloc(pool, all, 0, &p, NULL));
        memset(p, 1, all);
        CHECK_STATUS(arenite_pool_alloc(pool, 1, 0, &q, NULL), ARENITE_ERR_CAPACITY);
        CHECK_OK(arenite_pool_free(pool, p, NULL));
        CHECK_OK(arenite_pool_destroy(pool, NULL));
    }
}

/* BR-34, BR-42 */
static void resizing_keeps_contents_and_alignment(void) {
    arenite_pool_t *pool = fixed(1 << 20);
    unsigned char *p = NULL;
    void *v = NULL, *wall = NULL;
    size_t i, other = 0;
    CHECK_OK(arenite_pool_alloc_zeroed(pool, 6144, 4096, &v, NULL));
    memset(v, 0x7B, 6144);
    CHECK_OK(arenite_pool_alloc(pool, 128, 0, &wall, NULL));
    CHECK_OK(arenite_pool_realloc_zeroed(pool, v, 3000, &v, NULL));
    CHECK_OK(arenite_pool_realloc_zeroed(pool, v, 60000, &v, NULL));
    p = (unsigned char *)v;
    CHECK_EQ((uintptr_t)p % 4096, 0);
    for (i = 0; i < 60000; i++) {
        other += p[i] != (i < 3000 ? 0x7B : 0);
    }
    CHECK_EQ(other, 0);
    CHECK_OK(arenite_pool_realloc(pool, v, 1000, 50000, &v, NULL));
    CHECK_OK(arenite_pool_free(pool, v, NULL));
    CHECK_OK(arenite_pool_free(pool, wall, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static int calls_left, calls_out;

static void *take(void *user, size_t bytes, size_t alignment) {
    void *p = NULL;
    (void)user;
    if (calls_left-- <= 0) {
        return NULL;
    }
#ifdef _WIN32
    p = _aligned_malloc(bytes, alignment);
#else
    if (posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0) {
        return NULL;
    }
#endif
    calls_out++;
    return p;
}

static void give(void *user, void *data, size_t bytes, size_t alignment) {
    (void)user;
    (void)bytes;
    (void)alignment;
    calls_out--;
#ifdef _WIN32
    _aligned_free(data);
#else
    free(data);
#endif
}

/* BR-29 */
static void a_source_that_fails_leaves_the_pool_usable(void) {
    int k;
    for (k = 1; k <= 20; k++) {
        arenite_pool_options_t o = options();
        arenite_pool_t *pool = NULL;
        void *p[21];
        int n = 0, i;
        o.source.kind = ARENITE_SOURCE_CALLBACKS;
        o.source.allocate = take;
        o.source.deallocate = give;
        o.growth = ARENITE_GROWTH_EXACT;
        o.growth_bytes = 8192;
        calls_left = k;
        CHECK_OK(arenite_pool_create(&o, &pool, NULL));
        for (i = 0; i < k; i++) {
            CHECK_OK(arenite_pool_alloc(pool, 6000, 0, &p[n], NULL));
            n++;
        }
        CHECK_STATUS(arenite_pool_alloc(pool, 6000, 0, &p[n], NULL), ARENITE_ERR_NO_MEMORY);
        calls_left = 1;
        CHECK_OK(arenite_pool_alloc(pool, 6000, 0, &p[n], NULL));
        n++;
        for (i = 0; i < n; i++) {
            CHECK_OK(arenite_pool_free(pool, p[i], NULL));
        }
        CHECK_OK(arenite_pool_destroy(pool, NULL));
        CHECK_EQ(calls_out, 0);
    }
}

static void fallbacks_serve_and_are_counted(void) {
    arenite_pool_t *big = fixed(1 << 20), *small = NULL;
    arenite_pool_options_t o = options();
    void *p = NULL;
    o.first_region = 4096;
    o.growth = ARENITE_GROWTH_NONE;
    o.fallback = ARENITE_FALLBACK_POOL;
    o.fallback_pool = big;
    CHECK_OK(arenite_pool_create(&o, &small, NULL));
    CHECK_OK(arenite_pool_alloc(small, 10000, 0, &p, NULL));
    CHECK_EQ(stats(small).fallback_bytes, 10000);
    CHECK_EQ(stats(big).blocks, 1);
    CHECK_OK(arenite_pool_realloc(small, p, 20000, 0, &p, NULL));
    memset(p, 1, 20000);
    CHECK_OK(arenite_pool_free(small, p, NULL));
    CHECK_STATUS(arenite_pool_free(small, p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(stats(big).blocks, 0);
    CHECK_OK(arenite_pool_destroy(small, NULL));
    CHECK_OK(arenite_pool_destroy(big, NULL));
}

static void count_leak(void *user, void *data, size_t bytes, uint64_t tag, uint64_t sequence) {
    (void)data;
    (void)sequence;
    *(uint64_t *)user += bytes * 1000 + tag;
}

static void count_block(void *user, void *data, size_t bytes, size_t requested, uint32_t live) {
    (void)data;
    (void)requested;
    *(uint64_t *)user += live ? bytes : 0;
}

static void overruns_and_leaks_are_named(void) {
    arenite_pool_options_t o = options();
    arenite_pool_t *pool = NULL;
    arenite_failure_t f = no_failure();
    uint64_t sum = 0, live = 0;
    void *p = NULL;
    o.flags = ARENITE_POOL_GUARDS | ARENITE_POOL_POISON | ARENITE_POOL_LEAKS;
    o.quarantine_bytes = 1 << 16;
    CHECK_OK(arenite_pool_create(&o, &pool, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 300, 0, &p, NULL));
    CHECK_OK(arenite_pool_set_tag(pool, p, 7));
    CHECK_OK(arenite_pool_leaks(pool, count_leak, &sum));
    CHECK_EQ(sum, 300007);
    CHECK_OK(arenite_pool_walk(pool, count_block, &live));
    /* 384 and a granule on either side. */
    CHECK_EQ(live, 640);
    ((volatile char *)p)[-1] = 1;
    CHECK_STATUS(arenite_pool_check(pool, &f), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(f.needed, (uintptr_t)p);
    ((volatile unsigned char *)p)[-1] = 0xFB;
    CHECK_OK(arenite_pool_check(pool, NULL));
    ((volatile char *)p)[300] = 1;
    CHECK_STATUS(arenite_pool_check(pool, &f), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(f.needed, (uintptr_t)p);
    CHECK_STATUS(arenite_pool_free(pool, p, NULL), ARENITE_ERR_ARGUMENT);
    ((volatile unsigned char *)p)[300] = 0xFB;
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_STATUS(arenite_pool_free(pool, p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

/* ThreadSanitizer does not see the lock inside the library, so to it a block that changes hands is a race. */
#ifdef __SANITIZE_THREAD__
#define TOUCH(p, value, bytes) ((void)(bytes))
#else
#define TOUCH(p, value, bytes) memset(p, value, bytes)
#endif

#ifndef _WIN32
struct worker {
    arenite_pool_t *pool;
    void **slots;
    unsigned seed;
    int wrong;
};

static void *work(void *argument) {
    struct worker *w = (struct worker *)argument;
    int i;
    for (i = 0; i < 5000; i++) {
        void *p = NULL;
        unsigned at;
        size_t bytes;
        w->seed = w->seed * 1103515245u + 12345u;
        bytes = 4 + (w->seed >> 8) % 5000;
        if (arenite_pool_alloc(w->pool, bytes, 0, &p, NULL) != ARENITE_OK) {
            w->wrong++;
            continue;
        }
        TOUCH(p, (int)w->seed & 0xFF, bytes);
        at = (w->seed >> 4) % 64;
        p = __atomic_exchange_n(&w->slots[at], p, __ATOMIC_ACQ_REL);
        if (p != NULL) {
            w->wrong += arenite_pool_free(w->pool, p, NULL) != ARENITE_OK;
        }
    }
    return NULL;
}

static void threads_free_each_others_blocks(void) {
    enum { THREADS = 24 };
    arenite_pool_t *pool = NULL;
    pthread_t thread[THREADS];
    struct worker w[THREADS];
    void *slots[64] = {NULL};
    int i;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    for (i = 0; i < THREADS; i++) {
        w[i].pool = pool;
        w[i].slots = slots;
        w[i].seed = (unsigned)i * 77u + 1u;
        w[i].wrong = 0;
        CHECK_EQ(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        CHECK_EQ(w[i].wrong, 0);
    }
    for (i = 0; i < 64; i++) {
        CHECK_OK(arenite_pool_free(pool, slots[i], NULL));
    }
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_EQ(stats(pool).blocks, 0);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}
#endif

int main(void) {
    RUN(blocks_come_and_go);
    RUN(a_pool_in_use_is_not_destroyed);
    RUN(the_misuse_grid_is_refused);
    RUN(bad_options_are_refused);
    RUN(a_buffer_at_any_base);
    RUN(resizing_keeps_contents_and_alignment);
    RUN(a_source_that_fails_leaves_the_pool_usable);
    RUN(fallbacks_serve_and_are_counted);
    RUN(overruns_and_leaks_are_named);
#ifndef _WIN32
    RUN(threads_free_each_others_blocks);
#endif
    return DONE();
}
