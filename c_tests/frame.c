/* Recorded frames: replay, change of shape, blocks that outlive, plans saved and loaded. */
#include "helpers.h"

static arenite_frame_stats_t stats(const arenite_pool_t *pool) {
    arenite_frame_stats_t s;
    INIT(s);
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

/* The plan is there before the first run: nothing is recorded, and the area is the plan's. */
static void plans_are_made_ahead(void) {
    static const uint32_t lasts[] = {1, 2, 3, 3, ARENITE_NO_INDEX};
    arenite_pool_t *pool = NULL;
    arenite_frame_request_t r[5];
    arenite_frame_stats_t s;
    arenite_failure_t f = no_failure();
    arenite_frame_t *frame = NULL;
    void *kept[2] = {NULL, NULL}, *b[5];
    unsigned run, k;
    memset(r, 0, sizeof r);
    for (k = 0; k < 5; k++) {
        r[k].bytes = 100000 * (k + 1);
        r[k].last = lasts[k];
    }
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    CHECK_OK(arenite_frame_plan(pool, 7, r, 5, 0, NULL));
    CHECK_OK(arenite_frame_plan(pool, 7, r, 5, 100000, &f));
    for (run = 0; run < 2; run++) {
        CHECK_OK(arenite_frame_begin(pool, 7, &frame, NULL));
        for (k = 0; k < 5; k++) {
            CHECK_OK(arenite_frame_alloc(frame, 100000 * (k + 1), 0, &b[k], NULL));
            memset(b[k], (int)k, 100000 * (k + 1));
            if (k == 1) CHECK_OK(arenite_frame_free(frame, b[0], NULL));
            if (k == 2) CHECK_OK(arenite_frame_free(frame, b[1], NULL));
        }
        CHECK(*(unsigned char *)b[2] == 2 && *(unsigned char *)b[3] == 3);
        CHECK_OK(arenite_frame_free(frame, b[2], NULL));
        CHECK_OK(arenite_frame_free(frame, b[3], NULL));
        kept[run] = b[4];
        CHECK_OK(arenite_frame_end(frame));
    }
    s = stats(pool);
    CHECK_EQ(s.recorded, 0);
    CHECK_EQ(s.served, 8);
    CHECK_EQ(s.outside, 2);
    /* 300000 and 400000 beside each other, and 200000 beside 300000 before that. */
    CHECK(s.area_bytes >= 700000 && s.area_bytes < 710000);
    CHECK_OK(arenite_pool_free(pool, kept[0], NULL));
    CHECK_OK(arenite_pool_free(pool, kept[1], NULL));

    CHECK_STATUS(arenite_frame_plan(pool, 7, r, 0, 0, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_plan(pool, 7, NULL, 5, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_plan(NULL, 7, r, 5, 0, NULL), ARENITE_ERR_NULL);
    r[3].last = 2;
    CHECK_STATUS(arenite_frame_plan(pool, 7, r, 5, 0, &f), ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_kind == ARENITE_SUBJECT_BUFFER && f.subject_index == 3);
    r[3].last = 5;
    CHECK_STATUS(arenite_frame_plan(pool, 7, r, 5, 0, &f), ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_index == 3 && f.needed == 5 && f.available == 5);
    r[3].last = 3;
    r[1].alignment = 3;
    CHECK_STATUS(arenite_frame_plan(pool, 7, r, 5, 0, &f), ARENITE_ERR_ALIGNMENT);
    CHECK_EQ(f.subject_index, 1);
    r[1].alignment = 0;
    r[0].reserved = 1;
    CHECK_STATUS(arenite_frame_plan(pool, 7, r, 5, 0, NULL), ARENITE_ERR_ARGUMENT);
    r[0].reserved = 0;
    r[0].bytes = UINT64_MAX;
    CHECK_STATUS(arenite_frame_plan(pool, 7, r, 5, 0, &f), ARENITE_ERR_OVERFLOW);
    CHECK(f.subject_kind == ARENITE_SUBJECT_BUFFER && f.subject_index == 0);
    r[0].bytes = (uint64_t)1 << 62;
    CHECK(arenite_frame_plan(pool, 7, r, 5, 0, NULL) != ARENITE_OK);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

int main(void) {
    RUN(a_repeated_frame_is_served_from_its_plan);
    RUN(frames_are_found_without_being_named);
    RUN(plans_are_saved_and_loaded);
    RUN(plans_are_made_ahead);
    RUN(a_block_outlives_its_frame);
    RUN(misuse_is_refused);
    return DONE();
}
