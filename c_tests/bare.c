/* Planning without a heap: exact workspace at any address, the same offsets as the planner, and what is refused. */
#include "lite_arrays.h"

static const uint32_t rules[] = {ARENITE_STRATEGY_FIRST_FIT, ARENITE_STRATEGY_GREEDY_BY_SIZE,
                                 ARENITE_STRATEGY_TFLM_GREEDY};

static unsigned char workspace[16384];

static size_t workspace_for(uint64_t count) {
    size_t bytes = 0;
    CHECK_OK(arenite_bare_workspace_bytes(count, &bytes));
    return bytes;
}

static size_t workspace_for_rows(uint64_t count) {
    size_t bytes = 0;
    CHECK_OK(arenite_bare_place_bytes(count, &bytes));
    return bytes;
}

static void workspace_sizes(void) {
    size_t bytes = 77, last = 0;
    uint64_t n;
    for (n = 0; n < 100; n++) {
        CHECK(workspace_for(n) >= last);
        CHECK(workspace_for_rows(n) <= workspace_for(n) && workspace_for_rows(n) <= 16 * n + 7);
        last = workspace_for(n);
    }
    CHECK_STATUS(arenite_bare_workspace_bytes(UINT64_MAX, &bytes), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_bare_workspace_bytes(UINT64_MAX / 8, &bytes), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_bare_workspace_bytes(3, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_place_bytes(UINT64_MAX, &bytes), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_bare_place_bytes(3, NULL), ARENITE_ERR_NULL);
    CHECK_EQ(bytes, 77);
}

/* Behaviour 48: a workspace for one buffer is refused for two, with what is missing. */
static void b48_a_workspace_for_one_buffer_holds_one(void) {
    arenite_row_t rows[2];
    arenite_failure_t f;
    uint64_t offsets[2] = {7, 7}, arena = 7;
    memset(rows, 0, sizeof rows);
    rows[0].bytes = rows[1].bytes = 10;
    memset(&f, 0, sizeof f);
    f.struct_size = sizeof f;
    CHECK_OK(arenite_bare_place(ARENITE_STRATEGY_TFLM_GREEDY, rows, 1, workspace, workspace_for_rows(1), offsets, &arena, &f));
    CHECK_EQ(arena, 10);
    CHECK_STATUS(arenite_bare_place(ARENITE_STRATEGY_TFLM_GREEDY, rows, 2, workspace, workspace_for_rows(1), offsets, &arena, &f),
                 ARENITE_ERR_CAPACITY);
    CHECK_EQ(f.needed, workspace_for_rows(2));
    CHECK_EQ(f.available, workspace_for_rows(1));
    CHECK(arena == 10 && offsets[1] == 7);
}

static void workspace_is_exact_at_any_address(void) {
    lite_t l;
    arenite_lite_desc_t d;
    size_t needed, shift, k;
    lite_chain(&l);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    needed = workspace_for(l.tensor_count);
    for (shift = 0; shift < 33; shift++) {
        unsigned char *base = workspace + 64 + shift;
        uint64_t offsets[5] = {7, 7, 7, 7, 7}, arena = 77;
        arenite_failure_t f = no_failure();
        CHECK_STATUS(arenite_bare_plan(&d, NULL, rules[0], base, needed - 1, offsets, 5, &arena, &f), ARENITE_ERR_CAPACITY);
        CHECK_EQ(f.needed, needed);
        CHECK_EQ(f.available, needed - 1);
        CHECK(arena == 77 && offsets[0] == 7 && offsets[4] == 7);
        memset(workspace, 0xEE, sizeof workspace);
        CHECK_OK(arenite_bare_plan(&d, NULL, rules[0], base, needed, offsets, 5, &arena, &f));
        CHECK_EQ(round_up(arena, 128), 3072);
        CHECK_EQ(offsets[4], ARENITE_NO_AMOUNT);
        for (k = 0; k < sizeof workspace; k++) {
            if (workspace + k < base || workspace + k >= base + needed) {
                CHECK_EQ(workspace[k], 0xEE);
            }
        }
    }
}

/* Same offsets as the heap planner, for every rule, policy and layout. */
static void equal_to_the_planner(void) {
    static const uint32_t flags[] = {0, ARENITE_GRAPH_REUSE_INPUTS, ARENITE_GRAPH_KEEP_ALL, ARENITE_GRAPH_NO_IN_PLACE};
    uint32_t state = 88172645u, round, planned = 0;
    for (round = 0; round < 2000; round++) {
        const uint32_t layout = round % 2 ? ARENITE_LAYOUT_FULL : ARENITE_LAYOUT_MICRO;
        const uint32_t rule = rules[round % 3];
        arenite_graph_options_t o = graph_options(flags[next_random(&state) % 4], next_random(&state) % 3);
        arenite_planner_t *planner = new_planner(rule);
        arenite_graph_t *graph = NULL;
        arenite_plan_t *plan = NULL;
        uint64_t offsets[LITE_MOST], arena = 0;
        arenite_lite_desc_t d;
        arenite_status_t bare, heap;
        lite_t l;
        uint32_t t;
        lite_random(&l, &state, layout == ARENITE_LAYOUT_FULL);
        o.alignment = 1u << next_random(&state) % 9;
        d = lite_desc(&l, layout);
        bare = arenite_bare_plan(&d, &o, rule, workspace, sizeof workspace, offsets, LITE_MOST, &arena, NULL);
        CHECK_OK(arenite_graph_create_lite(&d, &graph, NULL));
        heap = arenite_planner_plan_graph(planner, graph, &o, &plan);
        CHECK_EQ(bare, heap);
        if (bare == ARENITE_OK && heap == ARENITE_OK) {
            planned++;
            CHECK_EQ(arena, info_of(plan).arena_bytes);
            for (t = 0; t < l.tensor_count; t++) {
                const arenite_plan_tensor_t p = tensor_in(plan, 0, t);
                CHECK_EQ(offsets[t], p.lifetime.arena == ARENITE_ARENA_MAIN ? p.offset : ARENITE_NO_AMOUNT);
            }
        }
        if (check_failed > 20) {
            printf("round %u, rule %u, policy %u, flags %u\n", round, rule, o.policy, o.flags);
            break;
        }
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_graph_destroy(graph));
        CHECK_OK(arenite_planner_destroy(planner));
    }
    printf("%u of %u graphs planned\n", planned, round);
    CHECK(planned > 1000);
}

static void rows_equal_to_the_planner(void) {
    uint32_t state = 123456789u, round;
    for (round = 0; round < 300; round++) {
        const uint32_t rule = rules[round % 3], n = next_random(&state) % 40;
        arenite_planner_t *planner = new_planner(rule);
        arenite_row_t rows[40];
        uint64_t offsets[40], arena = 0;
        arenite_plan_t *plan;
        uint32_t i;
        memset(rows, 0, sizeof rows);
        for (i = 0; i < n; i++) {
            arenite_buffer_desc_t b;
            uint32_t index;
            rows[i].bytes = next_random(&state) % 10 == 0 ? 0 : next_random(&state) % 3000;
            rows[i].first = next_random(&state) % 25;
            rows[i].last = rows[i].first + next_random(&state) % 8;
            rows[i].alignment = next_random(&state) % 3 == 0 ? 1u << next_random(&state) % 12 : 0;
            rows[i].flags = next_random(&state) % 5 == 0 ? ARENITE_ROW_KEPT : 0;
            b = buffer(rows[i].bytes, rows[i].first, rows[i].last);
            b.alignment = rows[i].alignment;
            b.flags = rows[i].flags & ARENITE_ROW_KEPT ? ARENITE_BUFFER_KEPT : 0;
            CHECK_OK(arenite_planner_add(planner, &b, &index));
        }
        plan = plan_of(planner);
        CHECK_OK(arenite_bare_place(rule, rows, n, workspace, workspace_for_rows(n), offsets, &arena, NULL));
        CHECK_EQ(arena, info_of(plan).arena_bytes);
        for (i = 0; i < n; i++) {
            CHECK_EQ(offsets[i], offset_of(plan, i));
        }
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_planner_destroy(planner));
    }
}

static void plan_refuses(void) {
    lite_t l;
    arenite_lite_desc_t d;
    arenite_graph_options_t o = graph_options(0, 0);
    const uint32_t strategies[] = {ARENITE_STRATEGY_AUTO, 4, 0xFFFFFFFFu};
    uint64_t offsets[5] = {7, 7, 7, 7, 7}, arena = 77;
    arenite_failure_t f = no_failure();
    size_t i;
    lite_chain(&l);
    d = lite_desc(&l, ARENITE_LAYOUT_MICRO);
#define BARE(desc, options, rule, space, bytes, out, count, out_arena) \
    arenite_bare_plan(desc, options, rule, space, bytes, out, count, out_arena, &f)
    for (i = 0; i < COUNT(strategies); i++) {
        CHECK_STATUS(BARE(&d, &o, strategies[i], workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_ARGUMENT);
        CHECK_EQ(f.needed, strategies[i]);
    }
    CHECK_STATUS(BARE(NULL, &o, 1, workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_NULL);
    CHECK_STATUS(BARE(&d, &o, 1, NULL, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_NULL);
    CHECK_STATUS(BARE(&d, &o, 1, workspace, sizeof workspace, NULL, 5, &arena), ARENITE_ERR_NULL);
    CHECK_STATUS(BARE(&d, &o, 1, workspace, sizeof workspace, offsets, 5, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(BARE(&d, &o, 1, workspace, sizeof workspace, offsets, 4, &arena), ARENITE_ERR_CAPACITY);
    CHECK(f.needed == 5 && f.available == 4);
    CHECK_STATUS(BARE(&d, &o, 1, workspace, 0, offsets, 5, &arena), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(BARE(&d, &o, 1, workspace, sizeof workspace, offsets, UINT64_MAX, &arena), ARENITE_ERR_OVERFLOW);
    o.policy = 0xFFFFFFFFu;
    CHECK_STATUS(BARE(&d, &o, 1, workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_ARGUMENT);
    memset(&o, 0, sizeof o);
    CHECK_STATUS(BARE(&d, &o, 1, workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_ARGUMENT);
    l.lists[1][0][1] = 5;
    CHECK_STATUS(BARE(&d, NULL, 1, workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_kind == ARENITE_SUBJECT_NODE && f.subject_index == 1 && f.needed == 5);
    lite_chain(&l);
    l.micro_tensors[1].bytes = SIZE_MAX; /* two of these are alive at step 1 */
    l.micro_tensors[2].bytes = SIZE_MAX;
    CHECK_STATUS(BARE(&d, NULL, 1, workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_OVERFLOW);
    memset(&d, 0, sizeof d);
    CHECK_STATUS(BARE(&d, NULL, 1, workspace, sizeof workspace, offsets, 5, &arena), ARENITE_ERR_ARGUMENT);
#undef BARE
    for (i = 0; i < 5; i++) {
        CHECK_EQ(offsets[i], 7);
    }
    CHECK_EQ(arena, 77);
}

static void place_refuses(void) {
    arenite_row_t rows[3];
    uint64_t offsets[3] = {7, 7, 7}, arena = 77;
    arenite_failure_t f = no_failure();
    const size_t space = sizeof workspace;
    memset(rows, 0, sizeof rows);
    rows[0].bytes = rows[1].bytes = rows[2].bytes = 100;
    CHECK_STATUS(arenite_bare_place(0, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_bare_place(0xFFFFFFFFu, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_bare_place(1, NULL, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_place(1, rows, 3, NULL, space, offsets, &arena, &f), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, NULL, &arena, &f), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, NULL, &f), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_place(1, rows, UINT64_MAX, workspace, space, offsets, &arena, &f), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, workspace_for_rows(3) - 1, offsets, &arena, &f), ARENITE_ERR_CAPACITY);
    CHECK_EQ(f.needed - f.available, 1);
    rows[1].first = 2;
    rows[1].last = 1;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_kind == ARENITE_SUBJECT_BUFFER && f.subject_index == 1 && f.step == 2);
    rows[1].last = 2;
    rows[2].flags = 8;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_index == 2 && f.needed == 8);
    rows[2].flags = 0;
    rows[2].alignment = 100;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ALIGNMENT);
    CHECK_EQ(f.subject_index, 2);
    rows[2].alignment = 0;
    rows[0].flags = rows[2].flags = ARENITE_ROW_FIXED; /* both at 0, both at step 0 */
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_kind == ARENITE_SUBJECT_BUFFER && f.other_kind == ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(f.subject_index + f.other_index, 2);
    rows[2].fixed_offset = 64;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_ALIGNMENT);
    rows[2].fixed_offset = UINT64_MAX - 127;
    rows[2].bytes = 128;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_OVERFLOW);
    rows[2].flags = 0;
    rows[2].bytes = UINT64_MAX;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, &f), ARENITE_ERR_OVERFLOW);
    CHECK(offsets[0] == 7 && offsets[1] == 7 && offsets[2] == 7 && arena == 77);
    rows[2].bytes = 100;
    rows[2].flags = ARENITE_ROW_FIXED;
    rows[2].fixed_offset = 1024;
    CHECK_OK(arenite_bare_place(1, rows, 3, workspace, space, offsets, &arena, NULL));
    CHECK(offsets[0] == 0 && offsets[2] == 1024 && arena == 1124);
    CHECK_OK(arenite_bare_place(1, NULL, 0, workspace, space, NULL, &arena, NULL));
    CHECK_EQ(arena, 0);
}

/* Fixed rows that say so may overlap one another, never the others. */
static void shared_rows(void) {
    arenite_row_t rows[3];
    uint64_t offsets[3] = {7, 7, 7}, arena = 77;
    size_t i;
    memset(rows, 0, sizeof rows);
    rows[0].bytes = rows[1].bytes = rows[2].bytes = 100;
    rows[0].flags = rows[1].flags = ARENITE_ROW_FIXED | ARENITE_ROW_SHARED;
    rows[0].alignment = rows[1].alignment = 1;
    rows[0].fixed_offset = 20;
    rows[1].fixed_offset = 60;
    for (i = 0; i < COUNT(rules); i++) {
        CHECK_OK(arenite_bare_place(rules[i], rows, 3, workspace, sizeof workspace, offsets, &arena, NULL));
        CHECK(offsets[0] == 20 && offsets[1] == 60 && offsets[2] == 256 && arena == 356);
    }
    rows[1].flags = ARENITE_ROW_FIXED; /* one of the two is enough */
    CHECK_OK(arenite_bare_place(1, rows, 3, workspace, sizeof workspace, offsets, &arena, NULL));
    rows[0].flags = ARENITE_ROW_FIXED;
    CHECK_STATUS(arenite_bare_place(1, rows, 3, workspace, sizeof workspace, offsets, &arena, NULL), ARENITE_ERR_ARGUMENT);
}

int main(void) {
    RUN(workspace_sizes);
    RUN(b48_a_workspace_for_one_buffer_holds_one);
    RUN(workspace_is_exact_at_any_address);
    RUN(equal_to_the_planner);
    RUN(rows_equal_to_the_planner);
    RUN(plan_refuses);
    RUN(place_refuses);
    RUN(shared_rows);
    return DONE();
}
