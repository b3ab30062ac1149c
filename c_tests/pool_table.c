/* The pool as the C library's allocator. */
#include "check.h"
#include <arenite.h>

#include <errno.h>

static arenite_pool_t *pool_of(size_t bytes) {
    arenite_pool_options_t o;
    arenite_pool_t *pool = NULL;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.first_region = bytes;
    o.growth = ARENITE_GROWTH_NONE;
    CHECK_OK(arenite_pool_create(&o, &pool, NULL));
    return pool;
}

static arenite_allocator_t table_of(const arenite_pool_t *pool) {
    arenite_allocator_t t;
    memset(&t, 0, sizeof t);
    t.struct_size = sizeof t;
    CHECK_OK(arenite_pool_allocator(pool, &t));
    return t;
}

static int is_aligned(const void *p, size_t alignment) { return (uintptr_t)p % alignment == 0; }

static void each_function_does_what_its_namesake_does(void) {
    arenite_pool_t *pool = pool_of(1 << 20);
    arenite_allocator_t t = table_of(pool);
    arenite_pool_stats_t s;
    unsigned char *a = (unsigned char *)t.malloc(t.context, 1000);
    unsigned char *b = (unsigned char *)t.calloc(t.context, 100, 30);
    unsigned char *c = (unsigned char *)t.aligned_alloc(t.context, 4096, 100);
    void *d = NULL;
    size_t i;
    CHECK(a != NULL && is_aligned(a, 128));
    CHECK(b != NULL && is_aligned(b, 128));
    CHECK(c != NULL && is_aligned(c, 4096));
    CHECK_EQ(t.posix_memalign(t.context, &d, 64, 0), 0);
    CHECK(d != NULL);
    for (i = 0; i < 3000; i++) {
        CHECK(b[i] == 0);
    }
    memset(a, 7, 1000);
    CHECK(t.usable_size(t.context, a) >= 1000);
    a = (unsigned char *)t.realloc(t.context, a, 100000);
    CHECK(a != NULL && a[0] == 7 && a[999] == 7);
    c = (unsigned char *)t.realloc(t.context, c, 200000);
    CHECK(c != NULL && is_aligned(c, 4096));
    b = (unsigned char *)t.realloc(t.context, b, 0);
    CHECK(b != NULL);
    t.free(t.context, a);
    t.free(t.context, b);
    t.free(t.context, c);
    t.free(t.context, d);
    t.free(t.context, NULL);
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    CHECK_OK(arenite_pool_stats(pool, &s));
    CHECK_EQ(s.blocks, 0);
    CHECK_EQ(s.bad_pointers, 0);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void misuse_is_refused_with_errno(void) {
    arenite_pool_t *pool = pool_of(1 << 16);
    arenite_allocator_t t = table_of(pool);
    arenite_pool_stats_t s;
    int local = 0;
    void *p = t.malloc(t.context, 100), *kept = &local;
    size_t k;
    for (k = 0; k < 4096; k++) {
        errno = 0;
        CHECK(t.malloc(t.context, SIZE_MAX - k) == NULL);
        CHECK_EQ(errno, ENOMEM);
        CHECK(t.realloc(t.context, p, SIZE_MAX - k) == NULL);
    }
    errno = 0;
    CHECK(t.calloc(t.context, SIZE_MAX / 2, 3) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(t.calloc(t.context, (size_t)1 << (sizeof(size_t) * 4), (size_t)1 << (sizeof(size_t) * 4)) == NULL);
    errno = 0;
    CHECK(t.aligned_alloc(t.context, 3, 10) == NULL);
    CHECK_EQ(errno, EINVAL);
    CHECK(t.aligned_alloc(t.context, 0, 10) == NULL);
    CHECK_EQ(t.posix_memalign(t.context, &kept, 2, 10), EINVAL);
    CHECK_EQ(t.posix_memalign(t.context, &kept, 48, 10), EINVAL);
    CHECK_EQ(t.posix_memalign(t.context, &kept, 128, 1 << 20), ENOMEM);
    CHECK_EQ(t.posix_memalign(t.context, NULL, 128, 10), EINVAL);
    CHECK(kept == (void *)&local);
    errno = 0;
    CHECK(t.realloc(t.context, &local, 10) == NULL);
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(t.usable_size(t.context, &local), 0);
    CHECK_EQ(t.usable_size(t.context, NULL), 0);
    t.free(t.context, &local);
    t.free(t.context, (char *)p + 1);
    t.free(t.context, p);
    t.free(t.context, p);
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    CHECK_OK(arenite_pool_stats(pool, &s));
    CHECK_EQ(s.bad_pointers, 4);
    CHECK_EQ(s.blocks, 0);
    CHECK_STATUS(arenite_pool_allocator(NULL, &t), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_allocator(pool, NULL), ARENITE_ERR_NULL);
    t.struct_size = 3;
    CHECK_STATUS(arenite_pool_allocator(pool, &t), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

int main(void) {
    RUN(each_function_does_what_its_namesake_does);
    RUN(misuse_is_refused_with_errno);
    return DONE();
}
