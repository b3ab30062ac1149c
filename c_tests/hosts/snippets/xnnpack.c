/* The document's lines for XNNPACK, around an engine that asks for two blocks. */
#include <stddef.h>

struct xnn_allocator {
    void *context;
    void *(*allocate)(void *context, size_t size);
    void *(*reallocate)(void *context, void *pointer, size_t size);
    void (*deallocate)(void *context, void *pointer);
    void *(*aligned_allocate)(void *context, size_t alignment, size_t size);
    void (*aligned_deallocate)(void *context, void *pointer);
};

static int failed;
static void xnn_initialize(const struct xnn_allocator *a) {
    void *weights = a->aligned_allocate(a->context, 64, 5000), *graph = a->allocate(a->context, 100);
    graph = a->reallocate(a->context, graph, 200);
    failed = weights == NULL || graph == NULL;
    a->deallocate(a->context, graph);
    a->aligned_deallocate(a->context, weights);
}

#include "xnnpack_scope.inc"

int xnnpack_snippet(void);
int xnnpack_snippet(void) {
    arenite_pool_t *pool = NULL;
#include "xnnpack_body.inc"
    return failed || arenite_pool_destroy(pool, NULL) != ARENITE_OK;
}
