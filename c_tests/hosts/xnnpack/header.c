/* The allocator for XNNPACK, through a struct with the members that XNNPACK documents. */
#include "check.h"

#include <arenite/xnnpack.h>

struct xnn_allocator {
    void *context;
    void *(*allocate)(void *context, size_t size);
    void *(*reallocate)(void *context, void *pointer, size_t size);
    void (*deallocate)(void *context, void *pointer);
    void *(*aligned_allocate)(void *context, size_t alignment, size_t size);
    void (*aligned_deallocate)(void *context, void *pointer);
};

static arenite_pool_t *pool;

static void blocks_are_aligned_and_keep_their_contents(void) {
    const struct xnn_allocator a = ARENITE_XNNPACK_ALLOCATOR(pool);
    size_t alignment;
    unsigned char *block = (unsigned char *)a.allocate(a.context, 1000);
    CHECK(block != NULL);
    CHECK_EQ((uintptr_t)block % 128, 0);
    memset(block, 5, 1000);
    block = (unsigned char *)a.reallocate(a.context, block, 100000);
    CHECK(block != NULL && block[0] == 5 && block[999] == 5);
    /* It failed, so the block is as it was. */
    CHECK(a.reallocate(a.context, block, SIZE_MAX / 2) == NULL);
    CHECK(block[999] == 5);
    a.deallocate(a.context, block);
    block = (unsigned char *)a.reallocate(a.context, NULL, 10);
    CHECK(block != NULL);
    a.deallocate(a.context, block);
    for (alignment = 1; alignment <= 8192; alignment *= 2) {
        void *aligned = a.aligned_allocate(a.context, alignment, 300);
        CHECK(aligned != NULL);
        CHECK_EQ((uintptr_t)aligned % alignment, 0);
        CHECK_EQ((uintptr_t)aligned % 128, 0);
        a.aligned_deallocate(a.context, aligned);
    }
    a.deallocate(a.context, NULL);
    a.aligned_deallocate(a.context, NULL);
    a.deallocate(a.context, &pool);
    CHECK(a.aligned_allocate(a.context, 129, 300) == NULL);
    CHECK(a.allocate(a.context, SIZE_MAX - 10) == NULL);
}

static void nothing_is_left(void) {
    arenite_pool_stats_t s;
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    CHECK_OK(arenite_pool_stats(pool, &s));
    CHECK_EQ(s.blocks, 0);
    CHECK_EQ(s.bad_pointers, 1);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

int main(void) {
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    RUN(blocks_are_aligned_and_keep_their_contents);
    RUN(nothing_is_left);
    return DONE();
}
