/*
 * BR-60: the thread rules of the header, to be run under ThreadSanitizer as well. Objects share nothing, so two planners
 * may be used from two threads; calls on a const object may run side by side; a violation that is noticed is BUSY.
 */
#include <arenite.h>

#include <pthread.h>

#include "check.h"

/* Under ThreadSanitizer this file is instrumented and the library is not: the lock around an object's failure record is
 * invisible to it, so that part is left to the library's own tests. */
#if defined(__SANITIZE_THREAD__)
#define SEES_LOCKS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_LOCKS 0
#endif
#endif
#ifndef SEES_LOCKS
#define SEES_LOCKS 1
#endif

enum { BUFFERS = 200, READERS = 8, READS = 500 };

/* Plans a chain of buffers and gives the arena; 0 when a call failed. */
static uint64_t plan_a_chain(unsigned seed, arenite_plan_t **keep) {
    arenite_planner_options_t options;
    arenite_planner_t *planner = NULL;
    arenite_plan_t *plan = NULL;
    arenite_plan_info_t info;
    uint32_t i, index;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.strategy = ARENITE_STRATEGY_GREEDY_BY_SIZE;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (arenite_planner_create(&options, &planner, NULL) != ARENITE_OK) {
        return 0;
    }
    for (i = 0; i < BUFFERS; i++) {
        arenite_buffer_desc_t buffer;
        memset(&buffer, 0, sizeof buffer);
        buffer.struct_size = sizeof buffer;
        seed = seed * 1664525u + 1013904223u;
        buffer.bytes = 1 + (seed >> 16);
        buffer.first = i;
        buffer.last = i + 1 + (seed >> 8) % 5;
        if (arenite_planner_add(planner, &buffer, &index) != ARENITE_OK) {
            return 0;
        }
    }
    if (arenite_planner_plan(planner, &plan) != ARENITE_OK || arenite_plan_info(plan, &info) != ARENITE_OK) {
        return 0;
    }
    (void)arenite_planner_destroy(planner);
    if (keep != NULL) {
        *keep = plan;
    } else {
        (void)arenite_plan_destroy(plan);
    }
    return info.arena_bytes;
}

/* An array and not a vector of pointers to locals: each thread writes its own place. */
static uint64_t arena_of[2];

static void *plan_in_a_thread(void *place) {
    *(uint64_t *)place = plan_a_chain(7, NULL);
    return NULL;
}

static void two_planners_in_two_threads(void) {
    pthread_t threads[2];
    int i;
    for (i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, plan_in_a_thread, &arena_of[i]) == 0);
    }
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(arena_of[0] != 0);
    CHECK_EQ(arena_of[0], arena_of[1]);
}

static arenite_plan_t *shared_plan;
static int wrong[READERS];

static void *read_in_a_thread(void *place) {
    int *failures = (int *)place;
    int i;
    for (i = 0; i < READS; i++) {
        uint64_t offset = 0;
        arenite_failure_t record;
        memset(&record, 0, sizeof record);
        record.struct_size = sizeof record;
        *failures += arenite_plan_offset(shared_plan, (uint32_t)(i % BUFFERS), &offset) != ARENITE_OK;
        *failures += offset % 128 != 0;
        if (!SEES_LOCKS) {
            continue;
        }
        /* Failing calls store a record in the shared object: that must be safe too. */
        *failures += arenite_plan_offset(shared_plan, BUFFERS, &offset) != ARENITE_ERR_ARGUMENT;
        *failures += arenite_plan_last_failure(shared_plan, &record) != ARENITE_OK;
        *failures += record.status != ARENITE_ERR_ARGUMENT;
    }
    return NULL;
}

static void one_plan_read_by_eight_threads(void) {
    pthread_t threads[READERS];
    int i;
    CHECK(plan_a_chain(9, &shared_plan) != 0);
    for (i = 0; i < READERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, read_in_a_thread, &wrong[i]) == 0);
    }
    for (i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(wrong[i], 0);
    }
    CHECK_OK(arenite_plan_destroy(shared_plan));
}

int main(void) {
    RUN(two_planners_in_two_threads);
    RUN(one_plan_read_by_eight_threads);
    return DONE();
}
