/* The capacity question: the verdict, its proof, and the best partial answer. */
#include "helpers.h"

static arenite_fit_t ask(arenite_planner_t *planner, uint64_t capacity, uint32_t *marks, uint64_t count,
                         arenite_plan_t **plan) {
    arenite_fit_t fit;
    INIT(fit);
    CHECK_OK(arenite_planner_fit(planner, capacity, marks, count, &fit, plan));
    return fit;
}

/* 1024 and 512 bytes at steps 0 to 1, 256 bytes at step 1, 128 bytes later. */
static arenite_planner_t *four(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    add(planner, 1024, 0, 1);
    add(planner, 512, 0, 1);
    add(planner, 256, 1, 1);
    add(planner, 128, 5, 6);
    return planner;
}

static void it_fits(void) {
    arenite_planner_t *planner = four();
    arenite_plan_t *plan = NULL;
    uint32_t marks[4] = {9, 9, 9, 9};
    const arenite_fit_t fit = ask(planner, 1792, marks, 4, &plan);
    CHECK_EQ(fit.verdict, ARENITE_FIT_YES);
    CHECK_EQ(fit.arena_bytes, 1792);
    CHECK_EQ(fit.outside_count, 0);
    CHECK_EQ(fit.outside_bytes, 0);
    CHECK_EQ(fit.step, ARENITE_NO_INDEX);
    CHECK_EQ(fit.needed, ARENITE_NO_AMOUNT);
    CHECK_EQ(marks[0] | marks[1] | marks[2] | marks[3], 0);
    CHECK_EQ(info_of(plan).arena_bytes, 1792);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_EQ(ask(planner, UINT64_MAX, NULL, 0, NULL).verdict, ARENITE_FIT_YES);
    CHECK_OK(arenite_planner_destroy(planner));
}

static void too_much_is_alive(void) {
    arenite_planner_t *planner = four();
    arenite_plan_t *plan = NULL;
    uint32_t marks[4] = {9, 9, 9, 9}, i;
    uint64_t outside = 0, bytes = 0;
    static const uint64_t sizes[] = {1024, 512, 256, 128};
    const arenite_fit_t fit = ask(planner, 1664, marks, 4, &plan);
    CHECK_EQ(fit.verdict, ARENITE_FIT_TOO_MUCH_ALIVE);
    CHECK_EQ(fit.step, 1);
    CHECK_EQ(fit.needed, 1792);
    CHECK_EQ(fit.lower_bound, 1792);
    /* The proof: those three. */
    for (i = 0; i < 4; i++) {
        CHECK_EQ((marks[i] & ARENITE_FIT_ALIVE) != 0, i < 3);
        if (marks[i] & ARENITE_FIT_OUTSIDE) {
            outside++;
            bytes += sizes[i];
            CHECK(offset_of(plan, i) + sizes[i] > 1664);
        } else {
            CHECK(offset_of(plan, i) + sizes[i] <= 1664);
        }
    }
    CHECK(outside > 0);
    CHECK_EQ(fit.outside_count, outside);
    CHECK_EQ(fit.outside_bytes, bytes);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_EQ(ask(planner, 0, NULL, 0, NULL).verdict, ARENITE_FIT_TOO_MUCH_ALIVE);
    CHECK_OK(arenite_planner_destroy(planner));
}

/* Two fixed buffers leave gaps that a third needs in one piece: the bytes would suffice at every step. */
static void no_packing(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_EXACT);
    arenite_buffer_desc_t d = buffer(128, 0, 1);
    uint32_t index, marks[2];
    arenite_fit_t fit;
    d.flags = ARENITE_BUFFER_FIXED;
    d.fixed_offset = 128;
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    add(planner, 256, 1, 2);
    fit = ask(planner, 384, marks, 2, NULL);
    CHECK_EQ(fit.verdict, ARENITE_FIT_NO_PACKING);
    CHECK_EQ(marks[1], ARENITE_FIT_OUTSIDE);
    CHECK_EQ(fit.outside_count, 1);
    CHECK_EQ(fit.outside_bytes, 256);
    CHECK_EQ(fit.arena_bytes, 512);
    CHECK_EQ(ask(planner, 512, NULL, 0, NULL).verdict, ARENITE_FIT_YES);
    CHECK_OK(arenite_planner_destroy(planner));
}

/* BR-19: the end of the effort is an answer with the best plan, not an error. */
static void br_19_no_effort_is_an_answer(void) {
    arenite_planner_options_t o;
    arenite_planner_t *planner = NULL;
    arenite_plan_t *plan = NULL;
    arenite_fit_t fit;
    uint32_t i;
    INIT(o);
    o.strategy = ARENITE_STRATEGY_EXACT;
    o.effort = 1;
    CHECK_OK(arenite_planner_create(&o, &planner, NULL));
    for (i = 0; i < 60; i++) {
        add(planner, 100 + 37 * i, i % 17, i % 17 + 4 + i % 7);
    }
    fit = ask(planner, 1, NULL, 0, &plan);
    CHECK_EQ(fit.verdict, ARENITE_FIT_TOO_MUCH_ALIVE);
    CHECK_OK(arenite_plan_destroy(plan));
    fit = ask(planner, fit.lower_bound, NULL, 0, &plan);
    CHECK(fit.verdict == ARENITE_FIT_YES || fit.verdict == ARENITE_FIT_UNKNOWN || fit.verdict == ARENITE_FIT_NO_PACKING);
    CHECK_EQ(fit.verdict == ARENITE_FIT_YES, fit.outside_count == 0);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* A graph's tensors, added as buffers, answer the same questions as buffers do. */
static void graphs_are_asked_too(void) {
    arenite_graph_t *graph;
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan = NULL, *again = NULL;
    uint32_t indices[4] = {7, 7, 7, 7}, i;
    uint64_t moved = 9;
    arenite_fit_t fit;
    CHECK_OK(arenite_graph_create(&graph));
    for (i = 0; i < 4; i++) {
        CHECK_EQ(add_tensor(graph, 1024), i);
    }
    add_node(graph, 0, -1, 1, -1);
    add_node(graph, 1, -1, 2, -1);
    add_node(graph, 2, -1, 3, -1);
    CHECK_STATUS(arenite_planner_add_graph(NULL, graph, NULL, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_add_graph(planner, NULL, NULL, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_add_graph(planner, graph, NULL, NULL, 4), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_add_graph(planner, graph, NULL, indices, 3), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).needed, 4);
    CHECK_EQ(indices[0], 7);
    CHECK_OK(arenite_planner_add_graph(planner, graph, NULL, indices, 4));
    CHECK_OK(arenite_planner_plan(planner, &plan));
    CHECK_EQ(info_of(plan).arena_bytes, 2048);
    fit = ask(planner, 1024, NULL, 0, NULL);
    CHECK_EQ(fit.verdict, ARENITE_FIT_TOO_MUCH_ALIVE);
    CHECK_EQ(fit.needed, 2048);
    CHECK_EQ(ask(planner, 2048, NULL, 0, NULL).verdict, ARENITE_FIT_YES);
    CHECK_OK(arenite_planner_replan(planner, plan, ARENITE_KEEP_OFFSETS, &again, &moved));
    CHECK_EQ(moved, 0);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_plan_destroy(again));
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_planner_destroy(planner));
}

static void refusals_write_nothing(void) {
    arenite_planner_t *planner = four();
    arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
    uint32_t marks[5] = {9, 9, 9, 9, 9};
    arenite_buffer_desc_t d = buffer(64, 0, 1);
    arenite_fit_t fit;
    uint32_t index;
    INIT(fit);
    fit.verdict = 77;
    CHECK_STATUS(arenite_planner_fit(planner, 1, marks, 5, &fit, &plan), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).needed, 4);
    CHECK_STATUS(arenite_planner_fit(planner, 1, NULL, 4, &fit, &plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_fit(planner, 1, marks, UINT64_MAX, &fit, &plan), ARENITE_ERR_OVERFLOW);
    fit.flags = 1;
    CHECK_STATUS(arenite_planner_fit(planner, 1, marks, 4, &fit, &plan), ARENITE_ERR_ARGUMENT);
    fit.flags = 0;
    d.flags = ARENITE_BUFFER_FIXED;
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    CHECK_STATUS(arenite_planner_fit(planner, 1, NULL, 0, &fit, &plan), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).subject_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(fit.verdict, 77);
    CHECK_EQ(marks[0], 9);
    CHECK(plan == UNTOUCHED(arenite_plan_t));
    CHECK_OK(arenite_planner_destroy(planner));
}

int main(void) {
    RUN(it_fits);
    RUN(too_much_is_alive);
    RUN(no_packing);
    RUN(br_19_no_effort_is_an_answer);
    RUN(refusals_write_nothing);
    RUN(graphs_are_asked_too);
    return DONE();
}
