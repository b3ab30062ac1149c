/* The plan: numbers, offsets, records that grow, exact sizes, and who outlives whom. */
#include "helpers.h"

static arenite_plan_t *three(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_GREEDY_BY_SIZE);
    arenite_plan_t *plan;
    add(planner, 100, 0, 1);
    add(planner, 200, 1, 2);
    add(planner, 0, 0, 2);
    plan = plan_of(planner);
    CHECK_OK(arenite_planner_destroy(planner));
    return plan;
}

static void numbers(void) {
    arenite_plan_t *plan = three();
    const arenite_plan_info_t i = info_of(plan);
    CHECK_EQ(i.arena_bytes, 356); /* 200 rounded up, then 100: not rounded itself */
    CHECK(i.lower_bound >= 300 && i.lower_bound <= 356);
    CHECK_EQ(i.total_bytes, 300);
    CHECK_EQ(i.persistent_bytes, 0);
    CHECK_EQ(i.buffer_count, 2);
    CHECK_EQ(i.alignment, 128);
    CHECK_EQ(i.strategy, ARENITE_STRATEGY_GREEDY_BY_SIZE);
    CHECK_EQ(i.optimal, 1);
    CHECK_EQ(i.nodes, 0);
    CHECK_EQ(plan_failure(plan).status, ARENITE_OK);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_plan_destroy(NULL));
}

/* BR-51: what the caller knows is written, what only it knows is cleared, nothing past its end is touched. */
static void records_of_other_versions(void) {
    arenite_plan_t *plan = three();
    struct {
        arenite_plan_info_t now;
        uint64_t later;
        uint64_t guard;
    } longer;
    arenite_plan_info_t before;
    uint32_t size;
    memset(&longer, 0x77, sizeof longer);
    longer.now.struct_size = sizeof longer.now + 8;
    longer.now.flags = 0;
    CHECK_OK(arenite_plan_info(plan, &longer.now));
    CHECK_EQ(longer.now.arena_bytes, 356);
    CHECK_EQ(longer.now.struct_size, sizeof longer.now + 8);
    CHECK_EQ(longer.later, 0);
    CHECK_EQ(longer.guard, 0x7777777777777777u);

    memset(&longer, 0x77, sizeof longer);
    longer.now.flags = 0;
    for (size = 0; size < sizeof longer.now; size++) { /* no earlier release had a shorter one */
        longer.now.struct_size = size;
        before = longer.now;
        CHECK_STATUS(arenite_plan_info(plan, &longer.now), ARENITE_ERR_ARGUMENT);
        CHECK(memcmp(&before, &longer.now, sizeof before) == 0);
    }
    longer.now.struct_size = sizeof longer.now;
    longer.now.flags = 1;
    before = longer.now;
    CHECK_STATUS(arenite_plan_info(plan, &longer.now), ARENITE_ERR_ARGUMENT);
    CHECK(memcmp(&before, &longer.now, sizeof before) == 0);
    longer.now.struct_size = 0xFFFFFFFFu;
    longer.now.flags = 0;
    CHECK_STATUS(arenite_plan_info(plan, &longer.now), ARENITE_ERR_ARGUMENT);

    {
        arenite_plan_tensor_t t;
        memset(&t, 0, sizeof t);
        CHECK_STATUS(arenite_plan_tensor(plan, 0, 0, &t), ARENITE_ERR_ARGUMENT);
        t.struct_size = sizeof t;
        t.flags = 2;
        CHECK_STATUS(arenite_plan_tensor(plan, 0, 0, &t), ARENITE_ERR_ARGUMENT);
        CHECK_EQ(t.bytes, 0);
    }
    {
        arenite_failure_t f;
        memset(&f, 0, sizeof f);
        CHECK_STATUS(arenite_plan_last_failure(plan, &f), ARENITE_ERR_ARGUMENT);
        f.struct_size = sizeof f;
        f.flags = 1;
        CHECK_STATUS(arenite_plan_last_failure(plan, &f), ARENITE_ERR_ARGUMENT);
    }
    CHECK_OK(arenite_plan_destroy(plan));
}

static void offsets_and_tensors(void) {
    arenite_plan_t *plan = three();
    arenite_plan_tensor_t t;
    uint64_t offset = 77;
    CHECK_EQ(offset_of(plan, 0), 256);
    CHECK_EQ(offset_of(plan, 1), 0);
    CHECK_EQ(offset_of(plan, 2), 0);
    t = tensor_in(plan, 0, 1);
    CHECK(t.offset == 0 && t.bytes == 200 && t.lifetime.arena == ARENITE_ARENA_MAIN);
    t = tensor_in(plan, 0, 2);
    CHECK(t.offset == ARENITE_NO_AMOUNT && t.bytes == 0 && t.lifetime.arena == ARENITE_ARENA_NONE);

    CHECK_STATUS(arenite_plan_offset(plan, 3, &offset), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(plan_failure(plan).subject_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(plan_failure(plan).subject_index, 3);
    CHECK_EQ(plan_failure(plan).available, 3);
    CHECK_STATUS(arenite_plan_offset(plan, 0xFFFFFFFFu, &offset), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_offset(plan, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_offset(plan, 0, (uint64_t *)(void *)((char *)&t + 1)), ARENITE_ERR_ALIGNMENT);
    CHECK_STATUS(arenite_plan_offset(NULL, 0, &offset), ARENITE_ERR_NULL);
    CHECK_EQ(offset, 77);

    INIT(t);
    t.bytes = 77;
    CHECK_STATUS(arenite_plan_tensor(plan, 0, 3, &t), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(plan_failure(plan).subject_kind, ARENITE_SUBJECT_TENSOR);
    CHECK_EQ(plan_failure(plan).subject_index, 3);
    CHECK_STATUS(arenite_plan_tensor(plan, 1, 0, &t), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(plan_failure(plan).subject_kind, ARENITE_SUBJECT_SUBGRAPH);
    CHECK_EQ(plan_failure(plan).subject_index, 1);
    CHECK_STATUS(arenite_plan_tensor(plan, 0xFFFFFFFFu, 0xFFFFFFFFu, &t), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_tensor(plan, 0, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_tensor(NULL, 0, 0, &t), ARENITE_ERR_NULL);
    CHECK_EQ(t.bytes, 77);
    CHECK_STATUS(arenite_plan_info(plan, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_info(NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_check(NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_last_failure(NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_last_failure(plan, NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
}

/* BR-28: what a base costs more is the bytes to the next aligned address, exactly. */
static void required_bytes(void) {
    arenite_plan_t *plan = three();
    uintptr_t address;
    size_t bytes = 77;
    CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, NULL, &bytes));
    CHECK_EQ(bytes, 356);
    for (address = 1u << 20; address < (1u << 20) + 300; address++) {
        CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, (const void *)address, &bytes));
        CHECK_EQ(bytes, 356 + (128 - address % 128) % 128);
        CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_PERSISTENT, (const void *)address, &bytes));
        CHECK_EQ(bytes, 0); /* an arena without bytes needs no alignment */
    }
    bytes = 77;
    CHECK_STATUS(arenite_plan_required_bytes(plan, ARENITE_ARENA_NONE, NULL, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_required_bytes(plan, 0xFFFFFFFFu, NULL, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(plan_failure(plan).needed, 0xFFFFFFFFu);
    CHECK_STATUS(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_required_bytes(NULL, ARENITE_ARENA_MAIN, NULL, &bytes), ARENITE_ERR_NULL);
    CHECK_EQ(bytes, 77);
    CHECK_OK(arenite_plan_destroy(plan));
}

/* BR-23: no sum with an address or a size wraps. */
static void required_bytes_near_the_limit(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan;
    size_t bytes = 77;
    add(planner, (uint64_t)SIZE_MAX - 130, 0, 1);
    plan = plan_of(planner);
    CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, (const void *)(uintptr_t)4096, &bytes));
    CHECK_EQ(bytes, SIZE_MAX - 130);
    CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, (const void *)(uintptr_t)(4096 + 1), &bytes));
    CHECK_EQ(bytes, SIZE_MAX - 3);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_clear(planner));
    /* Does not fit 64 bits once rounded, so that no larger plan gets as far as the question. */
    add(planner, (uint64_t)SIZE_MAX - 120, 0, 1);
    plan = UNTOUCHED(arenite_plan_t);
    CHECK_STATUS(arenite_planner_plan(planner, &plan), ARENITE_ERR_OVERFLOW);
    CHECK(plan == UNTOUCHED(arenite_plan_t));
    CHECK_OK(arenite_planner_destroy(planner));
}

static void other_handles_are_refused(void) {
    arenite_graph_t *graph = new_graph();
    void *wrong = graph;
    uint64_t offset;
    CHECK_STATUS(arenite_plan_offset((const arenite_plan_t *)wrong, 0, &offset), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_check((const arenite_plan_t *)wrong), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_destroy((arenite_plan_t *)wrong), ARENITE_ERR_ARGUMENT);
    wrong = (char *)wrong + 1; /* no handle at all */
    CHECK_STATUS(arenite_plan_check((const arenite_plan_t *)wrong), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_graph_destroy(graph));
}

/* Any order of destruction works: nothing refers to what it was made from. */
static void order_of_destruction(void) {
    int order;
    for (order = 0; order < 24; order++) {
        arenite_graph_t *graph = new_graph();
        arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
        arenite_plan_t *plan = NULL;
        arenite_arena_t *arena = NULL;
        int left[4] = {0, 1, 2, 3}, n = 4, rest = order;
        add_tensor(graph, 500);
        add_node(graph, -1, -1, 0, -1);
        CHECK_OK(arenite_planner_plan_graph(planner, graph, NULL, &plan));
        CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
        CHECK_OK(arenite_arena_commit(arena));
        while (n > 0) {
            const int k = rest % n, what = left[k];
            rest /= n;
            left[k] = left[--n];
            switch (what) {
                case 0: CHECK_OK(arenite_graph_destroy(graph)); break;
                case 1: CHECK_OK(arenite_planner_destroy(planner)); break;
                case 2: CHECK_OK(arenite_plan_destroy(plan)); break;
                default: {
                    void *data = NULL;
                    CHECK_OK(arenite_arena_resolve(arena, 0, 0, &data, NULL));
                    memset(data, 1, 500);
                    CHECK_OK(arenite_arena_destroy(arena));
                }
            }
        }
    }
}

int main(void) {
    RUN(numbers);
    RUN(records_of_other_versions);
    RUN(offsets_and_tensors);
    RUN(required_bytes);
    RUN(required_bytes_near_the_limit);
    RUN(other_handles_are_refused);
    RUN(order_of_destruction);
    return DONE();
}
