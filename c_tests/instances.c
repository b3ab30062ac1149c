/*
 * Instances of one plan on four threads: what an instance keeps is its own, constants are one copy, misuse is refused.
 * To be run under ThreadSanitizer as well: every access below is to memory the run owns, handed over by the library.
 */
#include <arenite.h>

#include <pthread.h>

#include "check.h"

/* Under ThreadSanitizer this file is instrumented and the library's lock is not, so it is told what the library promises:
 * who has an arena sees what the one before did with it. Two runs in one arena would still be a race. */
#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifdef TSAN
#ifdef __cplusplus
extern "C" {
#endif
void __tsan_acquire(void *);
void __tsan_release(void *);
#ifdef __cplusplus
}
#endif
#define TAKEN(address) __tsan_acquire(address)
#define GIVEN(address) __tsan_release(address)
#else
#define TAKEN(address) (void)(address)
#define GIVEN(address) (void)(address)
#endif

enum { INSTANCES = 16, ARENAS = 4, THREADS = 4, ROUNDS = 200 };

/* Tensors 0 -> 1, a persistent one (2) and a constant (3). */
static arenite_plan_t *make_plan(void) {
    static const uint64_t bytes[] = {2048, 2048, 64, 64};
    static const uint32_t kinds[] = {kAreniteArenaRw, kAreniteArenaRw, kAreniteArenaRwPersistent, kAreniteMmapRo};
    static const int32_t in[] = {0, 3, 2}, out[] = {1, 2};
    arenite_graph_t *graph = NULL;
    arenite_planner_t *planner = NULL;
    arenite_plan_t *plan = NULL;
    arenite_node_desc_t n;
    uint32_t index = 0;
    int i;
    CHECK_OK(arenite_graph_create(&graph));
    for (i = 0; i < 4; i++) {
        arenite_tensor_desc_t t;
        memset(&t, 0, sizeof t);
        t.struct_size = sizeof t;
        t.bytes = bytes[i];
        t.allocation_type = kinds[i];
        CHECK_OK(arenite_graph_add_tensor(graph, &t, &index));
    }
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    n.inputs = in;
    n.input_count = 3;
    n.outputs = out;
    n.output_count = 2;
    CHECK_OK(arenite_graph_add_node(graph, &n, &index));
    CHECK_OK(arenite_graph_set_inputs(graph, in, 1));
    CHECK_OK(arenite_graph_set_outputs(graph, out, 1));
    CHECK_OK(arenite_planner_create(NULL, &planner, NULL));
    CHECK_OK(arenite_planner_plan_graph(planner, graph, NULL, &plan));
    arenite_planner_destroy(planner);
    arenite_graph_destroy(graph);
    return plan;
}

static arenite_instances_t *create(uint64_t instances, uint64_t arenas, uint32_t flags, const arenite_pool_t *pool) {
    arenite_plan_t *plan = make_plan();
    arenite_instances_options_t o;
    arenite_instances_t *set = NULL;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.flags = flags;
    o.instances = instances;
    o.arenas = arenas;
    o.pool = pool;
    CHECK_OK(arenite_instances_create(plan, &o, &set, NULL));
    arenite_plan_destroy(plan);
    return set;
}

/* One byte per thread of what went wrong: the frame's counters belong to the main thread. */
typedef struct {
    arenite_instances_t *set;
    unsigned number, wrong;
} job_t;

static unsigned char *tensor(arenite_run_t *run, uint32_t index, job_t *job) {
    void *data = NULL;
    job->wrong += arenite_run_resolve(run, 0, index, &data, NULL) != ARENITE_OK;
    return (unsigned char *)data;
}

static void *work(void *argument) {
    job_t *job = (job_t *)argument;
    unsigned round;
    for (round = 0; round < ROUNDS; round++) {
        uint64_t instance = job->number * (INSTANCES / THREADS) + round % (INSTANCES / THREADS);
        unsigned char expected = (unsigned char)(round / (INSTANCES / THREADS));
        arenite_run_t *run = NULL;
        if (arenite_instances_acquire(job->set, instance, 1, &run, NULL) != ARENITE_OK) {
            job->wrong++;
            continue;
        }
        TAKEN(tensor(run, 0, job));
        TAKEN(tensor(run, 2, job));
        job->wrong += tensor(run, 2, job)[63] != expected;
        memset(tensor(run, 2, job), expected + 1, 64);
        memset(tensor(run, 0, job), (int)instance, 2048);
        job->wrong += tensor(run, 0, job)[2047] != instance || tensor(run, 3, job)[5] != 9;
        GIVEN(tensor(run, 0, job));
        GIVEN(tensor(run, 2, job));
        job->wrong += arenite_run_destroy(run) != ARENITE_OK;
    }
    return NULL;
}

static void four_threads_with(const arenite_pool_t *pool) {
    static unsigned char constant[64];
    arenite_instances_t *set = create(INSTANCES, ARENAS, ARENITE_INSTANCES_CHECK_THREADS, pool);
    arenite_instances_stats_t n;
    pthread_t threads[THREADS];
    job_t jobs[THREADS];
    unsigned t;
    memset(constant, 9, sizeof constant);
    CHECK_OK(arenite_instances_bind_constant(set, 0, 3, constant, sizeof constant, NULL));
    CHECK_STATUS(arenite_instances_bind_constant(set, 0, 0, constant, sizeof constant, NULL), ARENITE_ERR_ARGUMENT);
    for (t = 0; t < THREADS; t++) {
        jobs[t].set = set;
        jobs[t].number = t;
        jobs[t].wrong = 0;
        CHECK_EQ(pthread_create(&threads[t], NULL, work, &jobs[t]), 0);
    }
    for (t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK_EQ(jobs[t].wrong, 0);
    }
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    CHECK_OK(arenite_instances_stats(set, &n, NULL));
    CHECK_EQ(n.running, 0);
    CHECK(n.committed_bytes <= ARENAS * 4096);
    CHECK_EQ(n.persistent_bytes, INSTANCES * 64);
    CHECK_EQ(n.runs, THREADS * ROUNDS);
    CHECK(n.peak >= 1 && n.peak <= ARENAS && n.high_water == n.committed_bytes);
    CHECK_OK(arenite_instances_trim(set, NULL));
    CHECK_OK(arenite_instances_stats(set, &n, NULL));
    CHECK_EQ(n.committed_bytes, 0);
    CHECK_EQ(arenite_instances_destroy(set), ARENITE_OK);
}

static void four_threads(void) { four_threads_with(NULL); }

static void four_threads_on_arenas_of_a_pool(void) {
    arenite_pool_t *pool = NULL;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    four_threads_with(pool);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void a_pool_and_a_source_contradict_each_other(void) {
    static unsigned char buffer[8192];
    arenite_plan_t *plan = make_plan();
    arenite_pool_t *pool = NULL;
    arenite_instances_options_t o;
    arenite_instances_t *set = NULL;
    CHECK_OK(arenite_pool_create(NULL, &pool, NULL));
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.instances = o.arenas = 1;
    o.pool = pool;
    o.main.kind = ARENITE_SOURCE_BUFFER;
    o.main.base = buffer;
    o.main.bytes = sizeof buffer;
    CHECK_STATUS(arenite_instances_create(plan, &o, &set, NULL), ARENITE_ERR_ARGUMENT);
    CHECK(set == NULL);
    o.pool = NULL;
    CHECK_OK(arenite_instances_create(plan, &o, &set, NULL));
    CHECK_EQ(arenite_instances_destroy(set), ARENITE_OK);
    arenite_plan_destroy(plan);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static arenite_run_t *shared_run;

static void *intrude(void *argument) {
    void *data = NULL;
    *(arenite_status_t *)argument = arenite_run_resolve(shared_run, 0, 0, &data, NULL);
    return NULL;
}

static void *take_over(void *argument) {
    void *data = NULL;
    arenite_status_t *status = (arenite_status_t *)argument;
    *status = arenite_run_adopt(shared_run);
    if (*status == ARENITE_OK) {
        *status = arenite_run_resolve(shared_run, 0, 0, &data, NULL);
    }
    return NULL;
}

static void misuse_is_refused(void) {
    arenite_instances_t *set = create(3, 1, ARENITE_INSTANCES_CHECK_THREADS, NULL);
    arenite_run_t *none = NULL;
    arenite_status_t status = ARENITE_OK;
    arenite_failure_t f;
    pthread_t other;
    memset(&f, 0, sizeof f);
    f.struct_size = sizeof f;
    CHECK_OK(arenite_instances_acquire(set, 0, 0, &shared_run, NULL));
    CHECK_STATUS(arenite_instances_acquire(set, 0, 1, &none, &f), ARENITE_ERR_BUSY);
    CHECK(strstr(f.message, "running already") != NULL);
    CHECK_STATUS(arenite_instances_acquire(set, 1, 0, &none, &f), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_instances_acquire(set, 3, 0, &none, &f), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_instances_acquire(set, 1, 2, &none, &f), ARENITE_ERR_ARGUMENT);
    CHECK(none == NULL);
    CHECK_EQ(pthread_create(&other, NULL, intrude, &status), 0);
    pthread_join(other, NULL);
    CHECK_STATUS(status, ARENITE_ERR_BUSY);
    CHECK_EQ(pthread_create(&other, NULL, take_over, &status), 0);
    pthread_join(other, NULL);
    CHECK_OK(status);
    CHECK_EQ(arenite_instances_destroy(set), ARENITE_OK);
    CHECK_OK(arenite_run_adopt(shared_run));
    {
        void *data = NULL;
        CHECK_OK(arenite_run_resolve(shared_run, 0, 1, &data, NULL));
        memset(data, 1, 2048);
    }
    CHECK_EQ(arenite_run_destroy(shared_run), ARENITE_OK);
    CHECK_EQ(arenite_run_destroy(NULL), ARENITE_OK);
}

int main(void) {
    RUN(four_threads);
    RUN(four_threads_on_arenas_of_a_pool);
    RUN(a_pool_and_a_source_contradict_each_other);
    RUN(misuse_is_refused);
    return DONE();
}
