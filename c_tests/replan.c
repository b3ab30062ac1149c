/* Planning again with an older plan in hand. */
#include "helpers.h"

static arenite_plan_t *again(arenite_planner_t *planner, const arenite_plan_t *old, uint32_t keep, uint64_t *moved) {
    arenite_plan_t *plan = NULL;
    *moved = 77;
    CHECK_OK(arenite_planner_replan(planner, old, keep, &plan, moved));
    CHECK_OK(arenite_plan_check(plan));
    return plan;
}

static void br_17_smaller_buffers_stay_where_they_are(void) {
    static const uint32_t every[] = {ARENITE_STRATEGY_AUTO, ARENITE_STRATEGY_FIRST_FIT, ARENITE_STRATEGY_GREEDY_BY_SIZE,
                                     ARENITE_STRATEGY_TFLM_GREEDY, ARENITE_STRATEGY_EXACT};
    size_t s;
    uint32_t i;
    for (s = 0; s < COUNT(every); s++) {
        arenite_planner_t *planner = new_planner(every[s]);
        arenite_plan_t *old, *plan;
        uint64_t moved;
        add(planner, 512, 3, 4);
        add(planner, 512, 2, 3);
        add(planner, 640, 1, 1);
        add(planner, 512, 1, 2);
        old = plan_of(planner);
        CHECK_OK(arenite_planner_clear(planner));
        add(planner, 512, 3, 4);
        add(planner, 384, 2, 3);
        add(planner, 640, 1, 1);
        add(planner, 512, 1, 2);
        plan = again(planner, old, ARENITE_KEEP_ARENA, &moved);
        CHECK_EQ(moved, 0);
        CHECK(info_of(plan).arena_bytes <= info_of(old).arena_bytes);
        CHECK(rounded_arena(plan) <= 1152);
        for (i = 0; i < 4; i++) {
            CHECK_EQ(offset_of(plan, i), offset_of(old, i));
        }
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_plan_destroy(old));
        CHECK_OK(arenite_planner_destroy(planner));
    }
}

static void one_buffer_grows_and_one_is_new(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *old, *plan;
    arenite_arena_t *arena = NULL;
    uint64_t moved;
    uint32_t i;
    for (i = 0; i < 4; i++) {
        add(planner, 256, 0, 9);
    }
    old = plan_of(planner);
    CHECK_OK(arenite_planner_clear(planner));
    for (i = 0; i < 4; i++) {
        add(planner, i == 1 ? 512 : 256, 0, 9);
    }
    add(planner, 128, 4, 5);
    plan = again(planner, old, ARENITE_KEEP_OFFSETS, &moved);
    CHECK(moved <= 2); /* the one that grew, or the one it ran into, and the new one */
    CHECK(moved >= 1);
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
    plan = again(planner, old, ARENITE_KEEP_ARENA, &moved);
    CHECK_EQ(info_of(plan).arena_bytes, 1408);
    CHECK(moved <= 5);
    CHECK_OK(arenite_plan_destroy(plan));

    /* A buffer of 0 bytes is nowhere and does not count; fewer buffers than before are all right. */
    CHECK_OK(arenite_planner_clear(planner));
    add(planner, 0, 0, 9);
    add(planner, 256, 0, 9);
    plan = again(planner, old, ARENITE_KEEP_OFFSETS, &moved);
    CHECK_EQ(moved, 0);
    CHECK_EQ(offset_of(plan, 1), offset_of(old, 1));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_plan_destroy(old));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* BR-19: fixed offsets hold in a new plan too, and two that collide are named. */
static void br_19_fixed_offsets_hold(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *old, *plan;
    arenite_buffer_desc_t d = buffer(1024, 0, 1);
    arenite_failure_t f;
    uint64_t moved;
    uint32_t keep, index;
    add(planner, 1024, 0, 1);
    add(planner, 1024, 0, 1);
    add(planner, 512, 1, 1);
    old = plan_of(planner);
    CHECK_OK(arenite_planner_clear(planner));
    d.flags = ARENITE_BUFFER_FIXED;
    d.fixed_offset = 1024;
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    add(planner, 1024, 0, 1);
    add(planner, 512, 1, 1);
    for (keep = 0; keep < 2; keep++) {
        plan = again(planner, old, keep, &moved);
        CHECK_EQ(offset_of(plan, 0), 1024);
        CHECK_EQ(info_of(plan).arena_bytes, 2560);
        CHECK_OK(arenite_plan_destroy(plan));
    }
    d.fixed_offset = 1920;
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    for (keep = 0; keep < 2; keep++) {
        plan = UNTOUCHED(arenite_plan_t);
        moved = 77;
        CHECK_STATUS(arenite_planner_replan(planner, old, keep, &plan, &moved), ARENITE_ERR_ARGUMENT);
        f = planner_failure(planner);
        CHECK_EQ(f.subject_kind, ARENITE_SUBJECT_BUFFER);
        CHECK_EQ(f.other_kind, ARENITE_SUBJECT_BUFFER);
        CHECK_EQ(f.subject_index + f.other_index, 3);
        CHECK(plan == UNTOUCHED(arenite_plan_t) && moved == 77);
    }
    CHECK_OK(arenite_plan_destroy(old));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* A class in place is one buffer: what it does not run into stays. */
static void classes_stay_too(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *old = NULL, *plan;
    uint64_t moved;
    uint32_t i, grown;
    for (grown = 0; grown < 2; grown++) {
        CHECK_OK(arenite_planner_clear(planner));
        for (i = 0; i < 4; i++) {
            add(planner, grown && i == 3 ? 1024 : 256, 0, 9);
        }
        add(planner, 128, 3, 9);
        CHECK_OK(arenite_planner_alias(planner, 4, 0, 128));
        if (!grown) {
            old = plan_of(planner);
        }
    }
    plan = again(planner, old, ARENITE_KEEP_OFFSETS, &moved);
    CHECK_EQ(moved <= 2, 1); /* the one that grew, or who was above it: with a class both its members */
    CHECK_EQ(offset_of(plan, 4), offset_of(plan, 0) + 128);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_plan_destroy(old));
    CHECK_OK(arenite_planner_destroy(planner));
}

static void refusals(void) {
    arenite_planner_options_t o;
    arenite_planner_t *planner = NULL;
    arenite_plan_t *old, *of_graph, *plan = UNTOUCHED(arenite_plan_t);
    arenite_graph_t *graph = new_graph();
    uint64_t moved = 77;
    add_tensor(graph, 100);
    add_tensor(graph, 100);
    add_node(graph, 0, -1, 1, -1);
    set_ends(graph, 0, 1);
    of_graph = plan_graph(graph, NULL);
    INIT(o);
    o.capacity = 1024;
    CHECK_OK(arenite_planner_create(&o, &planner, NULL));
    add(planner, 1024, 0, 1);
    old = plan_of(planner);
    CHECK_STATUS(arenite_planner_replan(planner, of_graph, 0, &plan, &moved), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_replan(planner, old, 2, &plan, &moved), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).needed, 2);
    add(planner, 1, 1, 1);
    CHECK_STATUS(arenite_planner_replan(planner, old, 0, &plan, &moved), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_planner_replan(planner, old, 1, &plan, &moved), ARENITE_ERR_CAPACITY);
    CHECK_EQ(planner_failure(planner).available, 1024);
    CHECK(plan == UNTOUCHED(arenite_plan_t) && moved == 77);
    CHECK_OK(arenite_plan_destroy(old));
    CHECK_OK(arenite_plan_destroy(of_graph));
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_OK(arenite_graph_destroy(graph));
}

int main(void) {
    RUN(br_17_smaller_buffers_stay_where_they_are);
    RUN(one_buffer_grows_and_one_is_new);
    RUN(br_19_fixed_offsets_hold);
    RUN(classes_stay_too);
    RUN(refusals);
    return DONE();
}
