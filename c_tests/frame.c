/* Recorded frames: replay, change of shape, blocks that outlive, plans saved and loaded. */
#include "check.h"
#include <arenite.h>

static arenite_frame_stats_t stats(const arenite_pool_t *pool) {
    arenite_frame_stats_t s;
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    CHECK_OK(arenite_frame_stats(pool, &s));
    return s;
}

static void run(arenite_frame_t *frame, size_t scale) {
    void *live[3] = {NULL, NULL, NULL};
    int i, k, other = 0;
    for (i = 0; i < 40; i++) {
        size_t bytes = scale * (size_t)(1 + i % 5);
        void **slot = &live[i % 3];
        if (*slot != NULL) {
            other += ((unsigned char *)*slot)[0] != (unsigned char)(i - 3);
            CHECK_OK(arenite_frame_free(frame, *slot, NULL));
            CHECK_STATUS(arenite_frame_free(frame, *slot, NULL), ARENITE_ERR_ARGUMENT);
        }
        CHECK_OK(arenite_frame_alloc(frame, bytes, 64, slot, NULL));
        memset(*slot, i, bytes);
    }
    CHECK_EQ(other, 0);
    for (k = 0; k < 3; k++) {
        CHECK_OK(arenite_frame_free(frame, live[k], NULL));
    }
}

static void a_repeated_frame_is_served_from_its_plan(void) {
    arenite_pool_t *pool = NULL;
    arenite_frame_t *frame = NULL;
    int i;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    for (i = 0; i < 4; i++) {
        CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
        run(frame, 1000);
        CHECK_OK(arenite_frame_end(frame));
    }
    CHECK_EQ(stats(pool).recorded, 1);
    CHECK_EQ(stats(pool).served, 120);
    for (i = 0; i < 4; i++) {
        CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
        run(frame, 7001);
        CHECK_OK(arenite_frame_end(frame));
    }
    CHECK_EQ(stats(pool).recorded, 2);
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void frames_are_found_without_being_named(void) {
    arenite_pool_t *pool = NULL;
    arenite_pool_options_t options;
    void *live[3] = {NULL, NULL, NULL};
    int frame, i;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.flags = ARENITE_POOL_AUTO_FRAMES;
    CHECK_OK(arenite_pool_create(&options, &pool, NULL));
    for (frame = 0; frame < 6; frame++) {
        for (i = 0; i < 40; i++) {
            size_t bytes = 1000 * (size_t)(1 + i * i % 61);
            void **slot = &live[i % 3];
            if (*slot != NULL) {
                CHECK_EQ(((unsigned char *)*slot)[0], i - 3);
                CHECK_OK(arenite_pool_free(pool, *slot, NULL));
            }
            CHECK_OK(arenite_pool_alloc(pool, bytes, 64, slot, NULL));
            memset(*slot, i, bytes);
        }
        for (i = 0; i < 3; i++) {
            CHECK_OK(arenite_pool_free(pool, live[i], NULL));
            live[i] = NULL;
        }
    }
    CHECK(stats(pool).served >= 3 * 40);
    CHECK_OK(arenite_pool_check(pool, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void plans_are_saved_and_loaded(void) {
    arenite_pool_t *pool = NULL, *other = NULL;
    arenite_frame_t *frame = NULL;
    size_t bytes = 0, again = 0, i;
    unsigned char *saved;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_OK(arenite_pool_create(NULL, &other, NULL));
    CHECK_STATUS(arenite_frame_save(pool, 1, NULL, 0, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    run(frame, 1000);
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_frame_save(pool, 1, NULL, 0, &bytes));
    saved = (unsigned char *)malloc(bytes);
    CHECK_OK(arenite_frame_save(pool, 1, saved, bytes, &again));
    CHECK_EQ(again, bytes);
    for (i = 0; i < bytes; i++) {
        CHECK_STATUS(arenite_frame_load(other, 1, saved, i, NULL), ARENITE_ERR_ARGUMENT);
    }
    CHECK_OK(arenite_frame_load(other, 1, saved, bytes, NULL));
    free(saved);
    CHECK_OK(arenite_frame_begin(other, 1, &frame, NULL));
    run(frame, 1000);
    CHECK_OK(arenite_frame_end(frame));
    CHECK_EQ(stats(other).served, 40);
    CHECK_OK(arenite_pool_destroy(other, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void a_block_outlives_its_frame(void) {
    arenite_pool_t *pool = NULL;
    arenite_frame_t *frame = NULL;
    void *a = NULL, *b = NULL;
    int i;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    for (i = 0; i < 2; i++) {
        CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
        CHECK_OK(arenite_frame_alloc(frame, 1000, 0, &a, NULL));
        CHECK_OK(arenite_frame_alloc(frame, 1000, 0, &b, NULL));
        CHECK_OK(arenite_frame_free(frame, a, NULL));
        if (i == 0) {
            CHECK_OK(arenite_frame_free(frame, b, NULL));
        }
        CHECK_OK(arenite_frame_end(frame));
    }
    memset(b, 3, 1000);
    CHECK_STATUS(arenite_pool_destroy(pool, NULL), ARENITE_ERR_BUSY);
    CHECK_OK(arenite_pool_free(pool, b, NULL));
    CHECK_STATUS(arenite_pool_free(pool, b, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void misuse_is_refused(void) {
    arenite_pool_t *pool = NULL;
    arenite_frame_t *frame = NULL;
    void *p = NULL;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_STATUS(arenite_frame_begin(NULL, 1, &frame, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_begin(pool, 1, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_alloc(NULL, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_load(pool, 1, NULL, 10, NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_frame_end(NULL));
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    CHECK_STATUS(arenite_frame_alloc(frame, 1, 3, &p, NULL), ARENITE_ERR_ALIGNMENT);
    CHECK_STATUS(arenite_frame_alloc(frame, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_free(frame, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_realloc(frame, NULL, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_frame_free(frame, NULL, NULL));
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

int main(void) {
    RUN(a_repeated_frame_is_served_from_its_plan);
    RUN(frames_are_found_without_being_named);
    RUN(plans_are_saved_and_loaded);
    RUN(a_block_outlives_its_frame);
    RUN(misuse_is_refused);
    return DONE();
}
