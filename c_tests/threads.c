/*
 * BR-60: objects share nothing, const calls may run side by side, and breaking the thread rule is BUSY or works, never a
 * race. Also meant for ThreadSanitizer, which sees the C side, and of a library that is not instrumented what it does
 * through intercepted functions such as memcpy and realloc.
 */
#include "lite_arrays.h"

#if defined(_WIN32)

int main(void) { SKIP("needs POSIX threads"); }

#else

#include <pthread.h>

/* ThreadSanitizer takes the locks and counts inside a library that is not instrumented for missing. */
#if defined(HELPERS_THREAD_SANITIZER) && !defined(ARENITE_INSTRUMENTED)
#define LOCKS_ARE_SEEN 0
#else
#define LOCKS_ARE_SEEN 1
#endif

#define THREADS 8
#define ROUNDS 300

/* CHECK counts without a lock, so threads count failures of their own. */
typedef struct {
    pthread_t thread;
    uint32_t seed;
    int failed;
    uint64_t sum;
    const arenite_plan_t *plan;
    const arenite_arena_t *arena;
    arenite_planner_t *planner;
    int busy, worked;
} worker_t;

#define EXPECT(condition) (w->failed += (condition) ? 0 : 1)

static void run(worker_t *workers, int n, void *(*body)(void *)) {
    int i;
    for (i = 0; i < n; i++) {
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (i = 0; i < n; i++) {
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
        CHECK_EQ(workers[i].failed, 0);
    }
}

/* A whole life of every noun, nothing shared. */
static void *own_objects(void *argument) {
    worker_t *w = (worker_t *)argument;
    uint32_t state = w->seed;
    int round;
    w->sum = 0;
    for (round = 0; round < ROUNDS / 4; round++) {
        lite_t l;
        arenite_lite_desc_t d;
        arenite_graph_t *graph = NULL;
        arenite_planner_t *planner = NULL;
        arenite_plan_t *plan = NULL;
        arenite_arena_t *arena = NULL;
        arenite_plan_info_t info;
        lite_random(&l, &state, 1);
        d = lite_desc(&l, ARENITE_LAYOUT_FULL);
        EXPECT(arenite_graph_create_lite(&d, &graph, NULL) == ARENITE_OK);
        EXPECT(arenite_planner_create(NULL, &planner, NULL) == ARENITE_OK);
        EXPECT(arenite_planner_plan_graph(planner, graph, NULL, &plan) == ARENITE_OK);
        EXPECT(arenite_planner_plan_graph(planner, NULL, NULL, &plan) == ARENITE_ERR_NULL);
        INIT(info);
        EXPECT(arenite_plan_info(plan, &info) == ARENITE_OK);
        w->sum = w->sum * 31 + info.arena_bytes;
        EXPECT(arenite_arena_create(plan, NULL, &arena, NULL) == ARENITE_OK);
        EXPECT(arenite_arena_commit(arena) == ARENITE_OK);
        EXPECT(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, l.tensors, l.tensor_count) == ARENITE_OK);
        EXPECT(arenite_arena_destroy(arena) == ARENITE_OK);
        EXPECT(arenite_plan_destroy(plan) == ARENITE_OK);
        EXPECT(arenite_planner_destroy(planner) == ARENITE_OK);
        EXPECT(arenite_graph_destroy(graph) == ARENITE_OK);
    }
    return NULL;
}

static void planners_in_several_threads(void) {
    worker_t workers[4];
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < 4; i++) {
        workers[i].seed = i < 2 ? 11 : 22; /* two pairs that must come to the same results */
    }
    run(workers, 4, own_objects);
    CHECK_EQ(workers[0].sum, workers[1].sum);
    CHECK_EQ(workers[2].sum, workers[3].sum);
}

/* Every const call on one plan and one arena, some of them failing on purpose. */
static void *readers(void *argument) {
    worker_t *w = (worker_t *)argument;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        arenite_plan_info_t info;
        arenite_plan_tensor_t t;
        arenite_failure_t f = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}};
        uint64_t offset = 0, generation = 0;
        size_t bytes = 0;
        void *data = NULL;
        INIT(info);
        INIT(t);
        f.struct_size = sizeof f;
        EXPECT(arenite_plan_info(w->plan, &info) == ARENITE_OK && info.arena_bytes == 2176);
        EXPECT(arenite_plan_offset(w->plan, 1, &offset) == ARENITE_OK && offset == w->sum);
        EXPECT(arenite_plan_tensor(w->plan, 0, 1, &t) == ARENITE_OK && t.offset == w->sum);
        if (LOCKS_ARE_SEEN) { /* failures go to one record, behind a lock */
            EXPECT(arenite_plan_offset(w->plan, 99, &offset) == ARENITE_ERR_ARGUMENT);
            EXPECT(arenite_plan_last_failure(w->plan, &f) == ARENITE_OK && f.status == ARENITE_ERR_ARGUMENT);
            EXPECT(f.subject_index == 99);
            EXPECT(arenite_arena_resolve(w->arena, 0, 77, &data, &bytes) == ARENITE_ERR_ARGUMENT);
        }
        EXPECT(arenite_plan_check(w->plan) == ARENITE_OK);
        EXPECT(arenite_plan_required_bytes(w->plan, ARENITE_ARENA_MAIN, NULL, &bytes) == ARENITE_OK && bytes == 2176);
        EXPECT(arenite_arena_resolve(w->arena, 0, 1, &data, &bytes) == ARENITE_OK && bytes == 1024);
        EXPECT(arenite_arena_generation(w->arena, &generation) == ARENITE_OK);
        EXPECT(arenite_arena_committed_bytes(w->arena, ARENITE_ARENA_MAIN, &bytes) == ARENITE_OK && bytes == 2176);
    }
    return NULL;
}

static void one_plan_and_arena_read_by_eight_threads(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_arena_t *arena = NULL;
    arenite_plan_t *plan;
    worker_t workers[THREADS];
    int i;
    add(planner, 1024, 0, 1);
    add(planner, 1024, 1, 2);
    add(planner, 1152, 2, 3);
    plan = plan_of(planner);
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_OK(arenite_arena_commit(arena));
    CHECK_EQ(info_of(plan).arena_bytes, 2176);
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; i++) {
        workers[i].plan = plan;
        workers[i].arena = arena;
        workers[i].sum = offset_of(plan, 1);
    }
    run(workers, THREADS, readers);
    CHECK_OK(arenite_arena_destroy(arena)); /* everybody left */
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* The rule broken: calls that need the planner alone, from several threads. Each works or finds it busy. */
static void *rule_breakers(void *argument) {
    worker_t *w = (worker_t *)argument;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        arenite_buffer_desc_t d;
        uint32_t index = 0;
        arenite_status_t status;
        arenite_plan_t *plan = NULL;
        INIT(d);
        d.bytes = 100;
        d.last = 1;
        status = round % 3 ? arenite_planner_add(w->planner, &d, &index) : arenite_planner_plan(w->planner, &plan);
        EXPECT(status == ARENITE_OK || status == ARENITE_ERR_BUSY);
        w->worked += status == ARENITE_OK && round % 3 != 0;
        w->busy += status == ARENITE_ERR_BUSY;
        EXPECT(arenite_plan_destroy(plan) == ARENITE_OK);
    }
    return NULL;
}

static void a_broken_rule_is_noticed(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_FIRST_FIT);
    worker_t workers[4];
    uint32_t worked = 0, busy = 0;
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < 4; i++) {
        workers[i].planner = planner;
    }
    run(workers, 4, rule_breakers);
    for (i = 0; i < 4; i++) {
        worked += (uint32_t)workers[i].worked;
        busy += (uint32_t)workers[i].busy;
    }
    printf("%u buffers added, %u calls found the planner busy\n", worked, busy);
    CHECK_EQ(add(planner, 1, 0, 1), worked); /* nothing was lost */
    CHECK_OK(arenite_planner_destroy(planner));
}

int main(void) {
    RUN(planners_in_several_threads);
    RUN(one_plan_and_arena_read_by_eight_threads);
    if (LOCKS_ARE_SEEN) {
        RUN(a_broken_rule_is_noticed);
    }
    return DONE();
}

#endif
