/*
 * XNNPACK's memory from an arenite pool. Header only, C11 and C++11; link arenite::arenite. Needs no header of XNNPACK.
 *
 *   if (arenite_pool_create(NULL, &pool, NULL) != ARENITE_OK) { ... }
 *   struct xnn_allocator allocator = ARENITE_XNNPACK_ALLOCATOR(pool);
 *   xnn_initialize(&allocator);                                     // the first call of a process decides for all
 *
 * XNNPACK copies the struct. The pool is kept: it outlives everything XNNPACK makes. Blocks are aligned to 128 or to more
 * where XNNPACK asks for it (64 on a desktop, 32 on a phone). XNNPACK allocates when it creates and reshapes a runtime, not
 * when it runs one; where a program creates one per input, put frames (frames.hpp) around that.
 *
 * Threads: any.
 */
#ifndef ARENITE_XNNPACK_H
#define ARENITE_XNNPACK_H

#include <arenite.h>

/* The members of `struct xnn_allocator` in their order: context and five functions. */
#define ARENITE_XNNPACK_ALLOCATOR(pool)                                                                        \
    {                                                                                                          \
        (void *)(pool), arenite_xnnpack_allocate, arenite_xnnpack_reallocate, arenite_xnnpack_deallocate,      \
            arenite_xnnpack_aligned_allocate, arenite_xnnpack_deallocate                                       \
    }

#ifdef __cplusplus
extern "C" {
#endif

/* At least `alignment`, a power of two. Null where there is no memory. */
static inline void *arenite_xnnpack_aligned_allocate(void *context, size_t alignment, size_t bytes) {
    void *data = NULL;
    const arenite_pool_t *pool = (const arenite_pool_t *)context;
    return arenite_pool_alloc(pool, bytes, alignment < 128 ? 128 : alignment, &data, NULL) == ARENITE_OK ? data : NULL;
}

static inline void *arenite_xnnpack_allocate(void *context, size_t bytes) {
    return arenite_xnnpack_aligned_allocate(context, 128, bytes);
}

/* `data` may be null. On failure the old block is as it was. */
static inline void *arenite_xnnpack_reallocate(void *context, void *data, size_t bytes) {
    void *moved = NULL;
    const arenite_pool_t *pool = (const arenite_pool_t *)context;
    return arenite_pool_realloc(pool, data, bytes, 0, &moved, NULL) == ARENITE_OK ? moved : NULL;
}

/* Serves `deallocate` and `aligned_deallocate`. Null does nothing; a pointer of another heap is refused and left alone. */
static inline void arenite_xnnpack_deallocate(void *context, void *data) {
    (void)(arenite_pool_free((const arenite_pool_t *)context, data, NULL) == ARENITE_OK);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
