/* The trace recorder: every request of a pool as text, to a function or a file. */
#include "check.h"
#include <arenite.h>

typedef struct text {
    char bytes[4096];
    size_t used;
} text;

static void gather(void *user, const uint8_t *bytes, size_t count) {
    text *t = (text *)user;
    if (t->used + count < sizeof t->bytes) {
        memcpy(t->bytes + t->used, bytes, count);
        t->used += count;
    }
}

static void requests_appear_in_order(void) {
    arenite_pool_t *pool = NULL;
    arenite_frame_t *frame = NULL;
    void *before = NULL, *a = NULL, *b = NULL;
    static text t;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 10, 0, &before, NULL));
    CHECK_STATUS(arenite_pool_trace_stop(pool), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_trace_to(pool, gather, &t));
    CHECK_OK(arenite_pool_free(pool, before, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 100, 64, &a, NULL));
    CHECK_OK(arenite_pool_realloc(pool, a, 100000, 0, &a, NULL));
    CHECK_OK(arenite_frame_begin(pool, 7, &frame, NULL));
    CHECK_OK(arenite_frame_alloc(frame, 4096, 4096, &b, NULL));
    CHECK_OK(arenite_frame_free(frame, b, NULL));
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_pool_alloc(pool, 0, 1, &b, NULL));
    CHECK_OK(arenite_pool_free(pool, b, NULL));
    CHECK_STATUS(arenite_pool_free(pool, b, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_trace_stop(pool));
    t.bytes[t.used] = 0;
    CHECK(strstr(t.bytes, "\na 0 100 64\nr 0 100000\n# frame 0x7\na 1 4096 4096\nf 1\na 2 0 1\nf 2\n") != NULL);
    CHECK(strstr(t.bytes, "f 2\n# end: 1 blocks were live\nf 0\n") != NULL);
    CHECK_OK(arenite_pool_free(pool, a, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void what_is_wrong_is_refused(void) {
    arenite_pool_t *pool = NULL;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_STATUS(arenite_pool_trace_to(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_to_file(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_to_file(pool, "/no/such/place/trace", NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_trace_to(NULL, gather, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_stop(NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

int main(void) {
    RUN(requests_appear_in_order);
    RUN(what_is_wrong_is_refused);
    return DONE();
}
