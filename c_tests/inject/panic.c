/*
 * BR-57: a bug in the library does not take the program down. Built only with the feature `inject-panic`, which adds
 * arenite_inject_panic(n): the n-th guarded call of this thread from now on panics inside the guard. Every guarded function
 * has a line here. A handle then refuses its other functions, its _last_failure answers and its _destroy works.
 */
#include <arenite.h>

#include "check.h"

#ifdef __cplusplus
extern "C"
#endif
void arenite_inject_panic(uint32_t nth);

/* The call after the injection returns INTERNAL. */
#define PANICS(call)                              \
    do {                                          \
        arenite_inject_panic(1);                  \
        CHECK_STATUS(call, ARENITE_ERR_INTERNAL); \
    } while (0)

static arenite_graph_t *graph;
static arenite_planner_t *planner;
static arenite_plan_t *plan;
static arenite_arena_t *arena;
static arenite_failure_t record;

static void set_up(void) {
    arenite_tensor_desc_t tensor;
    uint32_t index;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    tensor.bytes = 100;
    tensor.allocation_type = kAreniteArenaRw;
    CHECK_OK(arenite_graph_create(&graph));
    CHECK_OK(arenite_graph_add_tensor(graph, &tensor, &index));
    CHECK_OK(arenite_planner_create(NULL, &planner, NULL));
    CHECK_OK(arenite_planner_plan_graph(planner, graph, NULL, &plan));
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_OK(arenite_arena_commit(arena));
}

static void tear_down(void) {
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void a_call_without_a_handle_recovers(void) {
    arenite_graph_t *out_graph = NULL;
    arenite_planner_t *out_planner = NULL;
    size_t bytes = 3;
    uint64_t arena_bytes = 4;
    PANICS(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    PANICS(arenite_graph_create(&out_graph));
    PANICS(arenite_graph_create_lite(NULL, &out_graph, &record));
    CHECK_EQ(record.status, ARENITE_ERR_INTERNAL);
    PANICS(arenite_planner_create(NULL, &out_planner, NULL));
    PANICS(arenite_bare_workspace_bytes(10, &bytes));
    PANICS(arenite_bare_plan(NULL, NULL, 1, NULL, 0, NULL, 0, &arena_bytes, NULL));
    PANICS(arenite_bare_place(1, NULL, 0, NULL, 0, NULL, &arena_bytes, NULL));
    CHECK(out_graph == NULL && out_planner == NULL && bytes == 3 && arena_bytes == 4);
}

static void the_nth_call_is_hit(void) {
    arenite_inject_panic(3);
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)), ARENITE_ERR_INTERNAL);
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)));
}

/* Each line on objects of its own: the call panics, the object refuses another call, tells why, and can be destroyed. */
#define POISONS(call, other, failure)                       \
    do {                                                    \
        set_up();                                           \
        PANICS(call);                                       \
        CHECK_STATUS(other, ARENITE_ERR_INTERNAL);          \
        CHECK_OK(failure);                                  \
        CHECK_EQ(record.status, ARENITE_ERR_INTERNAL);      \
        CHECK(strlen(record.message) > 0);                  \
        tear_down();                                        \
    } while (0)

#define POISONS_GRAPH(call) POISONS(call, arenite_graph_set_inputs(graph, NULL, 0), arenite_graph_last_failure(graph, &record))
#define POISONS_PLANNER(call) POISONS(call, arenite_planner_clear(planner), arenite_planner_last_failure(planner, &record))
#define POISONS_PLAN(call) POISONS(call, arenite_plan_check(plan), arenite_plan_last_failure(plan, &record))
#define POISONS_ARENA(call) POISONS(call, arenite_arena_release(arena), arenite_arena_last_failure(arena, &record))

static void a_graph_is_poisoned(void) {
    uint32_t index;
    POISONS_GRAPH(arenite_graph_add_tensor(graph, NULL, &index));
    POISONS_GRAPH(arenite_graph_add_node(graph, NULL, &index));
    POISONS_GRAPH(arenite_graph_set_inputs(graph, NULL, 0));
    POISONS_GRAPH(arenite_graph_set_outputs(graph, NULL, 0));
    POISONS_GRAPH(arenite_graph_set_variables(graph, NULL, 0));
    POISONS_GRAPH(arenite_graph_set_bytes(graph, 0, 1));
    POISONS_GRAPH(arenite_graph_pin(graph, 0, 0));
    POISONS_GRAPH(arenite_graph_attach(graph, graph, &index));
    POISONS_GRAPH(arenite_graph_lifetimes(graph, NULL, 0, NULL, 0));
}

static void a_planner_is_poisoned(void) {
    arenite_plan_t *out = NULL;
    uint64_t bytes;
    uint32_t index;
    POISONS_PLANNER(arenite_planner_add(planner, NULL, &index));
    POISONS_PLANNER(arenite_planner_alias(planner, 0, 0, 0));
    POISONS_PLANNER(arenite_planner_clear(planner));
    POISONS_PLANNER(arenite_planner_plan(planner, &out));
    POISONS_PLANNER(arenite_planner_plan_graph(planner, graph, NULL, &out));
    POISONS_PLANNER(arenite_planner_check(planner, NULL, 0, &bytes));
    CHECK(out == NULL);
}

static void a_plan_is_poisoned(void) {
    arenite_arena_t *out = NULL;
    uint64_t offset;
    size_t bytes;
    POISONS_PLAN(arenite_plan_info(plan, NULL));
    POISONS_PLAN(arenite_plan_offset(plan, 0, &offset));
    POISONS_PLAN(arenite_plan_tensor(plan, 0, 0, NULL));
    POISONS_PLAN(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, NULL, &bytes));
    POISONS_PLAN(arenite_plan_check(plan));
    set_up();
    PANICS(arenite_arena_create(plan, NULL, &out, NULL));
    CHECK(out == NULL);
    tear_down();
}

static void an_arena_is_poisoned(void) {
    uint64_t generation;
    size_t bytes;
    void *data;
    POISONS_ARENA(arenite_arena_commit(arena));
    POISONS_ARENA(arenite_arena_release(arena));
    POISONS_ARENA(arenite_arena_resolve(arena, 0, 0, &data, &bytes));
    POISONS_ARENA(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, NULL, 0));
    POISONS_ARENA(arenite_arena_bind_constant(arena, 0, 0, NULL, 0));
    POISONS_ARENA(arenite_arena_generation(arena, &generation));
    POISONS_ARENA(arenite_arena_committed_bytes(arena, ARENITE_ARENA_MAIN, &bytes));
}

/* A panic before anything was freed: the second attempt succeeds. */
static void destroy_works_after_a_panic_in_destroy(void) {
    set_up();
    PANICS(arenite_arena_destroy(arena));
    PANICS(arenite_plan_destroy(plan));
    PANICS(arenite_planner_destroy(planner));
    PANICS(arenite_graph_destroy(graph));
    tear_down();
}

int main(void) {
    record.struct_size = sizeof record;
    RUN(a_call_without_a_handle_recovers);
    RUN(the_nth_call_is_hit);
    RUN(a_graph_is_poisoned);
    RUN(a_planner_is_poisoned);
    RUN(a_plan_is_poisoned);
    RUN(an_arena_is_poisoned);
    RUN(destroy_works_after_a_panic_in_destroy);
    return DONE();
}
