/* Execution orders: found, taken, through the plan, and what is refused; views and in-place beyond TfLite's. */
#include "helpers.h"

static void add_op(arenite_graph_t *graph, const int32_t *in, uint64_t in_count, const int32_t *out, uint64_t out_count) {
    arenite_node_desc_t d;
    uint32_t index;
    INIT(d);
    d.inputs = in;
    d.input_count = in_count;
    d.outputs = out;
    d.output_count = out_count;
    CHECK_OK(arenite_graph_add_node(graph, &d, &index));
}

/* Two branches from one input, node by node in turn, although one after the other needs half. */
static arenite_graph_t *branches(void) {
    static const uint64_t bytes[] = {128, 4096, 4096, 128, 128, 256};
    static const int32_t ins[][2] = {{0, -1}, {0, -1}, {1, -1}, {2, -1}, {3, 4}};
    static const int32_t in[] = {0}, out[] = {5};
    arenite_graph_t *graph = new_graph();
    uint32_t i;
    for (i = 0; i < COUNT(bytes); i++) {
        CHECK_EQ(add_typed(graph, bytes[i], kAreniteArenaRw), i);
    }
    for (i = 0; i < COUNT(ins); i++) {
        int32_t o = (int32_t)i + 1;
        add_op(graph, ins[i], ins[i][1] < 0 ? 1 : 2, &o, 1);
    }
    CHECK_OK(arenite_graph_set_inputs(graph, in, 1));
    CHECK_OK(arenite_graph_set_outputs(graph, out, 1));
    return graph;
}

static uint64_t arena_of(const arenite_plan_t *plan) { return info_of(plan).arena_bytes; }

static arenite_plan_t *plan_with(const arenite_graph_t *graph, uint32_t flags) {
    arenite_graph_options_t o;
    INIT(o);
    o.flags = flags;
    return plan_graph(graph, &o);
}

static void check_order(const arenite_plan_t *plan, const uint32_t *expected) {
    uint32_t nodes[5], i;
    CHECK_OK(arenite_plan_order(plan, 0, nodes, 5));
    for (i = 0; i < 5; i++) {
        CHECK_EQ(nodes[i], expected[i]);
    }
}

static void through_the_plan(void) {
    static const uint32_t given[] = {0, 1, 2, 3, 4}, better[] = {0, 2, 1, 3, 4};
    arenite_graph_t *graph = branches();
    arenite_plan_t *plan = plan_with(graph, 0);
    uint32_t nodes[6] = {9, 9, 9, 9, 9, 9};
    CHECK_EQ(arena_of(plan), 8448);
    check_order(plan, given);
    CHECK_STATUS(arenite_plan_order(plan, 0, nodes, 4), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(plan_failure(plan).needed, 5);
    CHECK_EQ(plan_failure(plan).available, 4);
    CHECK_STATUS(arenite_plan_order(plan, 1, nodes, 5), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_order(plan, 0, NULL, 5), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_order(NULL, 0, nodes, 5), ARENITE_ERR_NULL);
    CHECK_EQ(nodes[0], 9);
    CHECK_OK(arenite_plan_destroy(plan));
    plan = plan_with(graph, ARENITE_GRAPH_REORDER);
    CHECK_EQ(arena_of(plan), 4480);
    check_order(plan, better);
    CHECK_OK(arenite_plan_destroy(plan));
    /* Pins name steps of one order. */
    {
        arenite_graph_options_t o;
        arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
        INIT(o);
        o.flags = ARENITE_GRAPH_REORDER;
        CHECK_OK(arenite_graph_pin(graph, 1, 4));
        plan = UNTOUCHED(arenite_plan_t);
        CHECK_STATUS(arenite_planner_plan_graph(planner, graph, &o, &plan), ARENITE_ERR_ARGUMENT);
        CHECK(plan == UNTOUCHED(arenite_plan_t));
        CHECK_OK(arenite_planner_destroy(planner));
    }
    CHECK_OK(arenite_graph_destroy(graph));
}

static void found_taken_and_numbered_as_added(void) {
    static const uint32_t better[] = {0, 2, 1, 3, 4};
    arenite_graph_t *graph = branches();
    arenite_order_result_t r;
    arenite_plan_t *plan;
    uint32_t nodes[5], again[5], i;
    INIT(r);
    CHECK_OK(arenite_graph_order(graph, NULL, NULL, 0, nodes, 5, &r));
    CHECK_EQ(r.arena_bytes_before, 8448);
    CHECK_EQ(r.arena_bytes_after, 4480);
    CHECK_EQ(r.proven, 1);
    CHECK_OK(arenite_graph_set_order(graph, 0, nodes, 5));
    plan = plan_with(graph, 0);
    CHECK_EQ(arena_of(plan), 4480);
    check_order(plan, better);
    CHECK_OK(arenite_plan_destroy(plan));
    /* Back again: the numbers are those of the places now, and the plan still speaks of nodes as they were added. */
    for (i = 0; i < 5; i++) {
        again[nodes[i]] = i;
    }
    CHECK_OK(arenite_graph_set_order(graph, 0, again, 5));
    plan = plan_with(graph, ARENITE_GRAPH_REORDER);
    check_order(plan, better);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_STATUS(arenite_graph_set_order(graph, 0, nodes, 4), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void a_bare_plan_has_no_order(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan = NULL;
    uint32_t nodes[1];
    CHECK_OK(arenite_planner_plan(planner, &plan));
    CHECK_STATUS(arenite_plan_order(plan, 0, nodes, 0), ARENITE_ERR_UNSUPPORTED);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* 0 -> 1, 0 -> 2, (1, 2) -> 3 concatenated, 3 -> 4: the parts are written where the whole will be. */
static void parts_lie_in_the_whole(void) {
    static const int32_t t[] = {0, 1, 2, 3, 4};
    arenite_graph_t *graph = new_graph();
    arenite_node_desc_t d;
    arenite_plan_t *plan;
    uint32_t index, i;
    uint64_t apart;
    static const uint64_t bytes[] = {128, 1024, 2048, 3072, 128};
    for (i = 0; i < COUNT(bytes); i++) {
        CHECK_EQ(add_typed(graph, bytes[i], kAreniteArenaRw), i);
    }
    add_op(graph, t, 1, t + 1, 1);
    add_op(graph, t, 1, t + 2, 1);
    INIT(d);
    d.inputs = t + 1;
    d.input_count = 2;
    d.outputs = t + 3;
    d.output_count = 1;
    d.view = 3;
    CHECK_STATUS(arenite_graph_add_node(graph, &d, &index), ARENITE_ERR_ARGUMENT);
    d.view = ARENITE_VIEW_OUTPUTS;
    d.view_input = 2;
    CHECK_STATUS(arenite_graph_add_node(graph, &d, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).needed, 2);
    d.view = ARENITE_VIEW_INPUTS;
    CHECK_OK(arenite_graph_add_node(graph, &d, &index));
    add_op(graph, t + 3, 1, t + 4, 1);
    CHECK_OK(arenite_graph_set_inputs(graph, t, 1));
    CHECK_OK(arenite_graph_set_outputs(graph, t + 4, 1));
    plan = plan_with(graph, 0);
    CHECK_EQ(arena_of(plan), 128 + 3072 + 128);
    CHECK_EQ(tensor_in(plan, 0, 1).offset, tensor_in(plan, 0, 3).offset);
    CHECK_EQ(tensor_in(plan, 0, 2).offset, tensor_in(plan, 0, 3).offset + 1024);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
    plan = plan_with(graph, ARENITE_GRAPH_NO_IN_PLACE);
    apart = arena_of(plan);
    CHECK_EQ(apart, 128 + 2 * 3072);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

int main(void) {
    RUN(through_the_plan);
    RUN(found_taken_and_numbered_as_added);
    RUN(a_bare_plan_has_no_order);
    RUN(parts_lie_in_the_whole);
    return DONE();
}
