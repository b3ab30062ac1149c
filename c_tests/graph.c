/* The graph: building it, lifetimes under every policy, subgraphs, and what is refused and how it is named. */
#include "helpers.h"

static const uint32_t every_policy[] = {ARENITE_POLICY_SAFE, ARENITE_POLICY_TFLITE, ARENITE_POLICY_TFLM};

static void create_and_destroy(void) {
    arenite_graph_t *graph = new_graph();
    arenite_failure_t f = no_failure();
    CHECK_EQ(graph_failure(graph).status, ARENITE_OK);
    CHECK_EQ(graph_failure(graph).subject_index, ARENITE_NO_INDEX);
    CHECK_EQ(graph_failure(graph).needed, ARENITE_NO_AMOUNT);
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_graph_destroy(NULL));
    CHECK_STATUS(arenite_graph_create(NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_last_failure(NULL, &f), ARENITE_ERR_NULL);
}

static void tensors_are_checked(void) {
    arenite_graph_t *graph = new_graph();
    arenite_tensor_desc_t d;
    struct {
        arenite_tensor_desc_t now;
        uint64_t later;
    } longer;
    uint32_t index = 77, i;
    for (i = kAreniteMemNone; i <= kAreniteNonCpu; i++) {
        CHECK_EQ(add_typed(graph, 8, i), i);
    }
    INIT(d);
    CHECK_STATUS(arenite_graph_add_tensor(NULL, &d, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_tensor(graph, NULL, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, (uint32_t *)(void *)((char *)&longer + 1)), ARENITE_ERR_ALIGNMENT);
    d.allocation_type = 9;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, &index), ARENITE_ERR_ARGUMENT);
    d.allocation_type = 0xFFFFFFFFu;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).needed, 0xFFFFFFFFu);
    INIT(d);
    d.flags = 4;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, &index), ARENITE_ERR_ARGUMENT);
    INIT(d);
    d.alignment = 24;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, &index), ARENITE_ERR_ALIGNMENT);
    d.alignment = 0x80000000u;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &d, &index), ARENITE_ERR_ALIGNMENT);
    memset(&longer, 0, sizeof longer);
    CHECK_STATUS(arenite_graph_add_tensor(graph, &longer.now, &index), ARENITE_ERR_ARGUMENT);
    longer.now.struct_size = sizeof longer;
    longer.later = 1;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &longer.now, &index), ARENITE_ERR_UNSUPPORTED);
    CHECK_EQ(index, 77);
    longer.later = 0;
    CHECK_OK(arenite_graph_add_tensor(graph, &longer.now, &index));
    CHECK_EQ(index, 9); /* the failures added nothing */
    CHECK_STATUS(arenite_graph_set_bytes(graph, 10, 8), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).subject_kind, ARENITE_SUBJECT_TENSOR);
    CHECK_EQ(graph_failure(graph).subject_index, 10);
    CHECK_STATUS(arenite_graph_set_bytes(graph, 0xFFFFFFFFu, 8), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_set_bytes(NULL, 0, 8), ARENITE_ERR_NULL);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void nodes_are_checked(void) {
    arenite_graph_t *graph = new_graph();
    const uint32_t callee = 1;
    node_t n;
    uint32_t index = 77;
    CHECK_STATUS(arenite_graph_add_node(NULL, &fill_node(&n, 0, -1, 1, -1)->desc, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_node(graph, NULL, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, NULL), ARENITE_ERR_NULL);
    n.desc.inputs = NULL;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_NULL);
    fill_node(&n, 0, -1, 1, -1)->desc.outputs = NULL;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_NULL);
    fill_node(&n, 0, -1, 1, -1)->desc.temporary_count = 1;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_NULL);
    fill_node(&n, 0, -1, 1, -1)->desc.input_count = UINT64_MAX;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_OVERFLOW);
    fill_node(&n, 0, -1, 1, -1)->desc.output_count = UINT64_MAX / 4;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_OVERFLOW);
    fill_node(&n, 0, -1, 1, -1)->desc.inputs = (const int32_t *)(const void *)((const char *)n.inputs + 2);
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ALIGNMENT);
    fill_node(&n, 0, -1, 1, -1)->desc.alignment = 48;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ALIGNMENT);
    fill_node(&n, 0, -1, 1, -1)->desc.flags = 1;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ARGUMENT);
    fill_node(&n, 0, -1, 1, -1)->desc.call = 4;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ARGUMENT);
    fill_node(&n, 0, -1, 1, -1)->desc.call = 0xFFFFFFFFu;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).needed, 0xFFFFFFFFu);
    /* A kind of call and subgraphs go together. */
    fill_node(&n, 0, -1, 1, -1)->desc.call = ARENITE_CALL_BRANCH;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ARGUMENT);
    fill_node(&n, 0, -1, 1, -1)->desc.subgraphs = &callee;
    n.desc.subgraph_count = 1;
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).subject_kind, ARENITE_SUBJECT_NODE);
    memset(&n.desc, 0, sizeof n.desc);
    CHECK_STATUS(arenite_graph_add_node(graph, &n.desc, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(index, 77);
    CHECK_EQ(add_node(graph, -1, -1, -1, -1), 0);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void lists_are_checked(void) {
    arenite_graph_t *graph = new_graph();
    const int32_t none = -1;
    CHECK_OK(arenite_graph_set_inputs(graph, NULL, 0));
    CHECK_OK(arenite_graph_set_outputs(graph, NULL, 0));
    CHECK_OK(arenite_graph_set_variables(graph, NULL, 0));
    CHECK_STATUS(arenite_graph_set_inputs(graph, NULL, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_outputs(graph, NULL, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_variables(graph, NULL, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_inputs(graph, &none, UINT64_MAX), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_graph_set_outputs(graph, &none, UINT64_MAX), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_graph_set_variables(graph, &none, UINT64_MAX), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_graph_set_inputs(NULL, &none, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_outputs(NULL, &none, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_variables(NULL, &none, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_pin(NULL, 0, 0), ARENITE_ERR_NULL);
    CHECK_OK(arenite_graph_destroy(graph));
}

/* Refused when the graph is planned, and by _lifetimes alike. */
static void expect_refused(arenite_graph_t *graph, arenite_status_t status, uint32_t kind, uint32_t index) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
    arenite_lifetime_t l;
    arenite_failure_t f;
    memset(&l, 0x77, sizeof l);
    CHECK_STATUS(arenite_planner_plan_graph(planner, graph, NULL, &plan), status);
    f = planner_failure(planner);
    CHECK_EQ(f.status, status);
    CHECK_EQ(f.subject_kind, kind);
    CHECK_EQ(f.subject_index, index);
    CHECK(strlen(f.message) > 8);
    CHECK(plan == UNTOUCHED(arenite_plan_t));
    if (status != ARENITE_ERR_UNKNOWN_SIZE && status != ARENITE_ERR_OVERFLOW) {
        CHECK_STATUS(arenite_graph_lifetimes(graph, NULL, 0, &l, 1), status);
        f = graph_failure(graph);
        CHECK_EQ(f.subject_kind, kind);
        CHECK_EQ(f.subject_index, index);
        CHECK_EQ(l.first, 0x77777777u);
    }
    CHECK_OK(arenite_planner_destroy(planner));
}

static arenite_graph_t *chain(uint32_t tensors, uint64_t bytes) {
    arenite_graph_t *graph = new_graph();
    uint32_t i;
    for (i = 0; i < tensors; i++) {
        add_tensor(graph, bytes);
        if (i > 0) {
            add_node(graph, (int32_t)i - 1, -1, (int32_t)i, -1);
        }
    }
    set_ends(graph, 0, (int32_t)tensors - 1);
    return graph;
}

static void bad_indices_are_named(void) {
    const int32_t bad[] = {3, -2, INT32_MAX, INT32_MIN};
    size_t i;
    for (i = 0; i < COUNT(bad); i++) {
        arenite_graph_t *graph = chain(3, 64);
        const int32_t list[1] = {bad[i]};
        const uint32_t index = add_node(graph, bad[i], -1, -1, -1);
        CHECK_EQ(index, 2);
        expect_refused(graph, ARENITE_ERR_ARGUMENT, ARENITE_SUBJECT_NODE, 2);
        CHECK_EQ(graph_failure(graph).needed, (uint64_t)(int64_t)bad[i]);
        CHECK_EQ(graph_failure(graph).available, 3);
        CHECK_EQ(graph_failure(graph).other_kind, ARENITE_SUBJECT_SUBGRAPH); /* node 2 of which subgraph */
        CHECK_EQ(graph_failure(graph).other_index, 0);
        CHECK_OK(arenite_graph_destroy(graph));

        graph = chain(3, 64);
        CHECK_OK(arenite_graph_set_inputs(graph, list, 1));
        expect_refused(graph, ARENITE_ERR_ARGUMENT, ARENITE_SUBJECT_SUBGRAPH, 0);
        CHECK_OK(arenite_graph_set_inputs(graph, NULL, 0));
        CHECK_OK(arenite_graph_set_outputs(graph, list, 1));
        expect_refused(graph, ARENITE_ERR_ARGUMENT, ARENITE_SUBJECT_SUBGRAPH, 0);
        CHECK_OK(arenite_graph_set_outputs(graph, NULL, 0));
        CHECK_OK(arenite_graph_set_variables(graph, list, 1));
        expect_refused(graph, ARENITE_ERR_ARGUMENT, ARENITE_SUBJECT_SUBGRAPH, 0);
        CHECK_OK(arenite_graph_destroy(graph));
    }
    {
        arenite_graph_t *graph = chain(3, 64);
        CHECK_OK(arenite_graph_pin(graph, 3, 1)); /* checked later */
        expect_refused(graph, ARENITE_ERR_ARGUMENT, ARENITE_SUBJECT_TENSOR, 3);
        CHECK_OK(arenite_graph_destroy(graph));
        graph = chain(3, 64);
        CHECK_OK(arenite_graph_pin(graph, 1, 2)); /* the last step is 1 */
        expect_refused(graph, ARENITE_ERR_ARGUMENT, ARENITE_SUBJECT_TENSOR, 1);
        CHECK_EQ(graph_failure(graph).needed, 2);
        CHECK_EQ(graph_failure(graph).available, 1);
        CHECK_OK(arenite_graph_destroy(graph));
    }
}

static void lifetimes_are_checked(void) {
    arenite_graph_t *graph = chain(3, 64);
    arenite_lifetime_t l[4];
    arenite_graph_options_t o;
    memset(l, 0x77, sizeof l);
    CHECK_STATUS(arenite_graph_lifetimes(NULL, NULL, 0, l, 3), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_lifetimes(graph, NULL, 0, NULL, 3), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_lifetimes(graph, NULL, 0, l, 4), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).needed, 4);
    CHECK_EQ(graph_failure(graph).available, 3);
    CHECK_STATUS(arenite_graph_lifetimes(graph, NULL, 1, l, 1), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(graph_failure(graph).subject_kind, ARENITE_SUBJECT_SUBGRAPH);
    CHECK_EQ(graph_failure(graph).subject_index, 1);
    CHECK_STATUS(arenite_graph_lifetimes(graph, NULL, 0, l, UINT64_MAX), ARENITE_ERR_OVERFLOW);
    o = graph_options(0, 3);
    CHECK_STATUS(arenite_graph_lifetimes(graph, &o, 0, l, 3), ARENITE_ERR_ARGUMENT);
    o = graph_options(0, 0xFFFFFFFFu);
    CHECK_STATUS(arenite_graph_lifetimes(graph, &o, 0, l, 3), ARENITE_ERR_ARGUMENT);
    o = graph_options(ARENITE_GRAPH_REORDER, 0);
    CHECK_STATUS(arenite_graph_lifetimes(graph, &o, 0, l, 3), ARENITE_ERR_UNSUPPORTED);
    o = graph_options(16, 0);
    CHECK_STATUS(arenite_graph_lifetimes(graph, &o, 0, l, 3), ARENITE_ERR_ARGUMENT);
    o = graph_options(0, 0);
    o.alignment = 65;
    CHECK_STATUS(arenite_graph_lifetimes(graph, &o, 0, l, 3), ARENITE_ERR_ALIGNMENT);
    memset(&o, 0, sizeof o);
    CHECK_STATUS(arenite_graph_lifetimes(graph, &o, 0, l, 3), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(l[0].first, 0x77777777u);
    CHECK_OK(arenite_graph_lifetimes(graph, NULL, 0, NULL, 0));
    CHECK_OK(arenite_graph_lifetimes(graph, NULL, 0, l, 2));
    CHECK_EQ(l[2].first, 0x77777777u); /* only as many as asked for */
    CHECK(l[0].first == 0 && l[0].last == 1 && l[0].flags == ARENITE_LIFETIME_KEPT && l[0].arena == ARENITE_ARENA_MAIN);
    CHECK(l[1].first == 0 && l[1].last == 1 && l[1].flags == 0 && l[1].root == 1 && l[1].span_count == 1);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void the_three_policies(void) {
    /* 0 -> 1, 2 (2 is never read); 1 -> 3; 3 is the output. */
    arenite_graph_t *graph = new_graph();
    arenite_graph_options_t o = graph_options(0, ARENITE_POLICY_SAFE);
    arenite_lifetime_t l;
    int i;
    for (i = 0; i < 4; i++) {
        add_tensor(graph, 64);
    }
    add_node(graph, 0, -1, 1, 2);
    add_node(graph, 1, -1, 3, -1);
    add_node(graph, 3, -1, -1, -1);
    set_ends(graph, 0, 3);
    l = lifetime(graph, &o, 2);
    CHECK(l.first == 0 && l.last == 0 && l.flags == 0);
    CHECK_EQ(lifetime(graph, &o, 0).last, 2);
    o.policy = ARENITE_POLICY_TFLITE;
    l = lifetime(graph, &o, 2);
    CHECK(l.last == 2 && l.flags == ARENITE_LIFETIME_KEPT);
    o.policy = ARENITE_POLICY_TFLM;
    CHECK_EQ(lifetime(graph, &o, 0).last, 0);
    o = graph_options(ARENITE_GRAPH_REUSE_INPUTS, ARENITE_POLICY_SAFE);
    CHECK_EQ(lifetime(graph, &o, 0).last, 0);
    o = graph_options(ARENITE_GRAPH_KEEP_ALL, ARENITE_POLICY_SAFE);
    for (i = 0; i < 4; i++) {
        l = lifetime(graph, &o, (uint32_t)i);
        CHECK(l.last == 2 && l.flags == ARENITE_LIFETIME_KEPT);
    }
    CHECK_OK(arenite_graph_destroy(graph));
}

static uint64_t arena_for(const arenite_graph_t *graph, uint32_t flags, uint32_t policy) {
    const arenite_graph_options_t o = graph_options(flags, policy);
    arenite_plan_t *plan = plan_graph(graph, &o);
    const uint64_t bytes = rounded_arena(plan);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
    return bytes;
}

static void br_02_inputs_are_kept_or_reused(void) {
    arenite_graph_t *graph = new_graph();
    add_tensor(graph, 2048); /* in, x, out */
    add_tensor(graph, 2048);
    add_tensor(graph, 2048);
    add_node(graph, 0, -1, 1, -1);
    add_node(graph, 1, -1, 2, -1);
    add_node(graph, 2, -1, -1, -1);
    set_ends(graph, 0, 2);
    CHECK_EQ(arena_for(graph, 0, ARENITE_POLICY_TFLM), 4096);
    CHECK_EQ(arena_for(graph, ARENITE_GRAPH_REUSE_INPUTS, ARENITE_POLICY_SAFE), 4096);
    CHECK_EQ(arena_for(graph, 0, ARENITE_POLICY_SAFE), 6144);
    CHECK_EQ(lifetime(graph, NULL, 0).last, 2);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void br_03_pin_one_tensor(void) {
    arenite_graph_t *graph = new_graph();
    int i;
    for (i = 0; i < 5; i++) {
        add_tensor(graph, 4096);
        add_node(graph, i - 1, -1, i, -1);
    }
    add_node(graph, 4, -1, -1, -1);
    CHECK_EQ(arena_for(graph, 0, ARENITE_POLICY_SAFE), 8192);
    CHECK_OK(arenite_graph_pin(graph, 1, 5));
    CHECK_EQ(lifetime(graph, NULL, 1).last, 5);
    CHECK_EQ(arena_for(graph, 0, ARENITE_POLICY_SAFE), 12288);
    CHECK_EQ(arena_for(graph, ARENITE_GRAPH_KEEP_ALL, ARENITE_POLICY_SAFE), 20480);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void br_05_input_that_is_output(void) {
    size_t i;
    for (i = 0; i < COUNT(every_policy); i++) {
        arenite_graph_options_t o = graph_options(0, every_policy[i]);
        arenite_graph_t *graph = new_graph();
        arenite_plan_t *plan;
        int t;
        for (t = 0; t < 3; t++) {
            add_tensor(graph, 1024);
        }
        add_node(graph, 0, -1, 1, -1);
        add_node(graph, 1, -1, 2, -1);
        add_node(graph, 2, -1, -1, -1);
        set_ends(graph, 0, 0);
        plan = plan_graph(graph, &o);
        CHECK_EQ(rounded_arena(plan), 3072);
        CHECK_EQ(lifetime(graph, &o, 0).last, 2);
        CHECK(disjoint(tensor_in(plan, 0, 0).offset, 1024, tensor_in(plan, 0, 2).offset, 1024));
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_graph_destroy(graph));
    }
}

static void br_06_unread_inputs_of_a_loop_body_have_storage(void) {
    arenite_graph_t *graph = new_graph(), *body = new_graph();
    arenite_arena_t *arena = NULL;
    arenite_plan_t *plan;
    uint32_t subgraph = 0, index;
    int32_t ends[2] = {0, 1};
    void *counter = NULL, *data = NULL;
    node_t n;
    add_tensor(body, 4);  /* the counter, unread */
    add_tensor(body, 48); /* data */
    add_tensor(body, 4);
    add_tensor(body, 48);
    add_node(body, 1, -1, 2, 3);
    CHECK_OK(arenite_graph_set_inputs(body, ends, 2));
    ends[0] = 2;
    ends[1] = 3;
    CHECK_OK(arenite_graph_set_outputs(body, ends, 2));

    add_tensor(graph, 4);
    add_tensor(graph, 48);
    add_tensor(graph, 4);
    add_tensor(graph, 48);
    CHECK_OK(arenite_graph_attach(graph, body, &subgraph));
    CHECK_EQ(subgraph, 1);
    fill_node(&n, 0, 1, 2, 3)->desc.call = ARENITE_CALL_LOOP;
    n.desc.subgraphs = &subgraph;
    n.desc.subgraph_count = 1;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    ends[0] = 0;
    ends[1] = 1;
    CHECK_OK(arenite_graph_set_inputs(graph, ends, 2));
    ends[0] = 2;
    ends[1] = 3;
    CHECK_OK(arenite_graph_set_outputs(graph, ends, 2));

    plan = plan_graph(graph, NULL);
    CHECK_EQ(tensor_in(plan, 1, 0).lifetime.arena, ARENITE_ARENA_MAIN);
    CHECK(tensor_in(plan, 1, 0).lifetime.first <= tensor_in(plan, 1, 1).lifetime.first);
    CHECK(disjoint(tensor_in(plan, 1, 0).offset, 4, tensor_in(plan, 1, 1).offset, 48));
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_OK(arenite_arena_commit(arena));
    CHECK_OK(arenite_arena_resolve(arena, 1, 0, &counter, NULL));
    CHECK_OK(arenite_arena_resolve(arena, 1, 1, &data, NULL));
    CHECK(counter != NULL && data != NULL && counter != data);
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_graph_destroy(body));
}

static void br_09_a_read_inside_a_block_is_a_read_of_its_owner(void) {
    arenite_graph_t *graph = new_graph(), *block = new_graph();
    uint32_t subgraph = 0, index, i;
    arenite_lifetime_t l, inside[1];
    arenite_plan_t *plan;
    int32_t input = 0;
    node_t n;
    add_tensor(block, 1024);
    add_node(block, 0, -1, -1, -1);
    CHECK_OK(arenite_graph_set_inputs(block, &input, 1));
    for (i = 0; i < 3; i++) {
        add_tensor(graph, 1024); /* x, y, z */
    }
    add_node(graph, -1, -1, 0, -1);
    add_node(graph, -1, -1, 1, -1);
    add_node(graph, 1, -1, 2, -1);
    CHECK_OK(arenite_graph_attach(graph, block, &subgraph));
    fill_node(&n, 0, 2, -1, -1)->desc.call = ARENITE_CALL_SEQUENCE;
    n.desc.input_count = 1;
    n.desc.subgraphs = &subgraph;
    n.desc.subgraph_count = 1;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    l = lifetime(graph, NULL, 0);
    CHECK_OK(arenite_graph_lifetimes(graph, NULL, 1, inside, 1));
    CHECK(l.first == 0 && l.last >= 3);
    CHECK(inside[0].last <= l.last); /* alive while the block reads */
    plan = plan_graph(graph, NULL);
    CHECK(disjoint(tensor_in(plan, 0, 0).offset, 1024, tensor_in(plan, 0, 1).offset, 1024));
    CHECK(disjoint(tensor_in(plan, 0, 0).offset, 1024, tensor_in(plan, 0, 2).offset, 1024));
    CHECK(disjoint(tensor_in(plan, 0, 0).offset, 1024, tensor_in(plan, 1, 0).offset, 1024));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_graph_destroy(block));
}

static void br_12_constants_are_not_planned(void) {
    arenite_graph_t *graph = new_graph();
    arenite_plan_t *plan;
    arenite_plan_tensor_t t;
    int i;
    for (i = 0; i < 3; i++) {
        add_tensor(graph, 262144);
    }
    add_typed(graph, 1048576, kAreniteMmapRo);
    add_typed(graph, 1048576, kAreniteMmapRo);
    add_node(graph, 0, 3, 1, -1);
    add_node(graph, 1, 4, 2, -1);
    set_ends(graph, 0, 2);
    CHECK_EQ(arena_for(graph, 0, ARENITE_POLICY_TFLM), 524288);
    plan = plan_graph(graph, NULL);
    CHECK_EQ(info_of(plan).total_bytes, 786432);
    CHECK_EQ(info_of(plan).buffer_count, 3);
    t = tensor_in(plan, 0, 3);
    CHECK_EQ(t.offset, ARENITE_NO_AMOUNT);
    CHECK_EQ(t.bytes, 1048576);
    CHECK_EQ(t.lifetime.arena, ARENITE_ARENA_NONE);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void br_14_chain_and_keep_all(void) {
    arenite_graph_t *graph = chain(4, 4096);
    arenite_graph_options_t o = graph_options(ARENITE_GRAPH_KEEP_ALL, 0);
    arenite_plan_t *plan = plan_graph(graph, &o);
    uint32_t a, b;
    for (a = 0; a < 4; a++) {
        for (b = a + 1; b < 4; b++) {
            CHECK(disjoint(tensor_in(plan, 0, a).offset, 4096, tensor_in(plan, 0, b).offset, 4096));
        }
    }
    CHECK_OK(arenite_plan_destroy(plan));
    o = graph_options(ARENITE_GRAPH_REUSE_INPUTS, 0);
    plan = plan_graph(graph, &o);
    CHECK_EQ(tensor_in(plan, 0, 0).offset, tensor_in(plan, 0, 2).offset);
    CHECK(tensor_in(plan, 0, 0).lifetime.last < tensor_in(plan, 0, 2).lifetime.first);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void br_15_scratch_and_output_are_apart(void) {
    arenite_graph_t *graph = new_graph();
    arenite_graph_options_t o = graph_options(ARENITE_GRAPH_REUSE_INPUTS, 0);
    const int32_t scratch = 1;
    arenite_plan_t *plan;
    uint32_t index;
    node_t n;
    add_tensor(graph, 1024); /* in, scratch, out */
    add_tensor(graph, 2048);
    add_tensor(graph, 1024);
    add_node(graph, -1, -1, 0, -1);
    fill_node(&n, 0, -1, 2, -1)->desc.temporaries = &scratch;
    n.desc.temporary_count = 1;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    add_node(graph, 2, -1, -1, -1);
    plan = plan_graph(graph, &o);
    CHECK_EQ(rounded_arena(plan), 4096);
    CHECK(disjoint(tensor_in(plan, 0, 0).offset, 1024, tensor_in(plan, 0, 1).offset, 2048));
    CHECK(disjoint(tensor_in(plan, 0, 2).offset, 1024, tensor_in(plan, 0, 1).offset, 2048));
    CHECK(tensor_in(plan, 0, 1).lifetime.first == 1 && tensor_in(plan, 0, 1).lifetime.last == 1);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

/* BR-21: an unknown size is a status, not a number; 0 bytes are fine; sums that wrap are refused. */
static void br_21_sizes(void) {
    arenite_graph_t *graph = chain(3, 64);
    arenite_tensor_desc_t d;
    arenite_plan_t *plan;
    uint32_t index;
    INIT(d);
    d.allocation_type = kAreniteArenaRw;
    d.flags = ARENITE_TENSOR_UNKNOWN_SIZE;
    CHECK_OK(arenite_graph_add_tensor(graph, &d, &index));
    CHECK_EQ(index, 3);
    plan = plan_graph(graph, NULL); /* nobody writes it */
    CHECK_OK(arenite_plan_destroy(plan));
    add_node(graph, 2, -1, 3, -1);
    expect_refused(graph, ARENITE_ERR_UNKNOWN_SIZE, ARENITE_SUBJECT_TENSOR, 3);
    CHECK_OK(arenite_graph_set_bytes(graph, 3, 17179869184u));
    plan = plan_graph(graph, NULL);
    CHECK(info_of(plan).arena_bytes >= 17179869184u && info_of(plan).arena_bytes < 17179869184u + 1024);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_set_bytes(graph, 3, 0));
    plan = plan_graph(graph, NULL);
    CHECK_EQ(tensor_in(plan, 0, 3).offset, ARENITE_NO_AMOUNT);
    CHECK_EQ(tensor_in(plan, 0, 3).lifetime.arena, ARENITE_ARENA_NONE);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_set_bytes(graph, 3, UINT64_MAX));
    {
        arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
        plan = UNTOUCHED(arenite_plan_t);
        CHECK_STATUS(arenite_planner_plan_graph(planner, graph, NULL, &plan), ARENITE_ERR_OVERFLOW);
        CHECK(plan == UNTOUCHED(arenite_plan_t));
        CHECK_OK(arenite_planner_destroy(planner));
    }
    CHECK_OK(arenite_graph_destroy(graph));
}

static void variables_are_persistent(void) {
    arenite_graph_t *graph = chain(3, 64);
    arenite_tensor_desc_t d;
    arenite_plan_t *plan;
    uint32_t flagged, listed = add_tensor(graph, 200), typed = add_typed(graph, 300, kAreniteArenaRwPersistent), dynamic;
    int32_t list;
    INIT(d);
    d.allocation_type = kAreniteArenaRw;
    d.flags = ARENITE_TENSOR_VARIABLE;
    d.bytes = 100;
    CHECK_OK(arenite_graph_add_tensor(graph, &d, &flagged));
    dynamic = add_typed(graph, 999, kAreniteDynamic);
    list = (int32_t)listed;
    CHECK_OK(arenite_graph_set_variables(graph, &list, 1));
    add_node(graph, (int32_t)flagged, (int32_t)listed, (int32_t)typed, (int32_t)dynamic);
    plan = plan_graph(graph, NULL);
    CHECK_EQ(tensor_in(plan, 0, flagged).lifetime.arena, ARENITE_ARENA_PERSISTENT);
    CHECK_EQ(tensor_in(plan, 0, listed).lifetime.arena, ARENITE_ARENA_PERSISTENT);
    CHECK_EQ(tensor_in(plan, 0, typed).lifetime.arena, ARENITE_ARENA_PERSISTENT);
    CHECK_EQ(tensor_in(plan, 0, dynamic).lifetime.arena, ARENITE_ARENA_NONE);
    CHECK(disjoint(tensor_in(plan, 0, flagged).offset, 100, tensor_in(plan, 0, listed).offset, 200));
    CHECK(disjoint(tensor_in(plan, 0, flagged).offset, 100, tensor_in(plan, 0, typed).offset, 300));
    CHECK(disjoint(tensor_in(plan, 0, listed).offset, 200, tensor_in(plan, 0, typed).offset, 300));
    CHECK(info_of(plan).persistent_bytes >= 600 && info_of(plan).persistent_bytes <= 600 + 2 * 128);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void in_place_sharing(void) {
    arenite_graph_t *graph = new_graph();
    arenite_graph_options_t o = graph_options(ARENITE_GRAPH_NO_IN_PLACE, 0);
    arenite_plan_t *plan;
    uint32_t index, i;
    node_t n;
    for (i = 0; i < 4; i++) {
        add_tensor(graph, 1024);
    }
    add_node(graph, 0, -1, 1, -1);
    fill_node(&n, 1, -1, 2, -1)->desc.inplace = ARENITE_INPLACE_INPUT0;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    add_node(graph, 2, -1, 3, -1);
    set_ends(graph, 0, 3);
    plan = plan_graph(graph, NULL);
    CHECK_EQ(tensor_in(plan, 0, 2).lifetime.root, 1);
    CHECK_EQ(tensor_in(plan, 0, 2).offset, tensor_in(plan, 0, 1).offset);
    CHECK_OK(arenite_plan_destroy(plan));
    plan = plan_graph(graph, &o);
    CHECK_EQ(tensor_in(plan, 0, 2).lifetime.root, 2);
    CHECK(disjoint(tensor_in(plan, 0, 2).offset, 1024, tensor_in(plan, 0, 1).offset, 1024));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void alignments_come_from_options_tensors_and_nodes(void) {
    arenite_graph_t *graph = chain(3, 100);
    arenite_graph_options_t o = graph_options(0, 0);
    arenite_tensor_desc_t d;
    arenite_plan_t *plan;
    uint32_t index;
    node_t n;
    INIT(d);
    d.allocation_type = kAreniteArenaRw;
    d.bytes = 100;
    d.alignment = 4096;
    CHECK_OK(arenite_graph_add_tensor(graph, &d, &index));
    fill_node(&n, 1, -1, 3, -1)->desc.alignment = 1024;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    o.alignment = 16;
    plan = plan_graph(graph, &o);
    CHECK_EQ(info_of(plan).alignment, 4096);
    CHECK_EQ(tensor_in(plan, 0, 3).offset % 4096, 0);
    CHECK_EQ(tensor_in(plan, 0, 1).offset % 1024, 0);
    CHECK_EQ(tensor_in(plan, 0, 0).offset % 16, 0);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void subgraphs_are_checked(void) {
    arenite_graph_t *graph = chain(2, 64), *callee = chain(2, 64);
    uint32_t number = 77, missing = 9, index;
    void *wrong = NULL;
    node_t n;
    CHECK_STATUS(arenite_graph_attach(graph, graph, &number), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_graph_attach(graph, NULL, &number), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_attach(NULL, callee, &number), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_attach(graph, callee, NULL), ARENITE_ERR_NULL);
    wrong = new_planner(ARENITE_STRATEGY_AUTO);
    CHECK_STATUS(arenite_graph_attach(graph, (const arenite_graph_t *)wrong, &number), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_planner_destroy((arenite_planner_t *)wrong));
    CHECK_EQ(number, 77);
    CHECK_OK(arenite_graph_attach(graph, callee, &number));
    CHECK_EQ(number, 1);
    CHECK_OK(arenite_graph_attach(graph, callee, &number));
    CHECK_EQ(number, 2);
    CHECK_OK(arenite_graph_destroy(callee)); /* a copy was made */

    fill_node(&n, 0, -1, 1, -1)->desc.call = ARENITE_CALL_BRANCH;
    n.desc.input_count = n.desc.output_count = 1;
    n.desc.subgraphs = &missing;
    n.desc.subgraph_count = 1;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    {
        arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
        arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
        CHECK_STATUS(arenite_planner_plan_graph(planner, graph, NULL, &plan), ARENITE_ERR_ARGUMENT);
        CHECK(plan == UNTOUCHED(arenite_plan_t));
        CHECK_OK(arenite_planner_destroy(planner));
    }
    CHECK_OK(arenite_graph_destroy(graph));
}

/* A graph that runs itself never ends; neither must the library. */
static void calls_in_a_circle_are_refused(void) {
    arenite_graph_t *graph = new_graph();
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
    uint32_t self = 0, index;
    node_t n;
    arenite_status_t status;
    fill_node(&n, -1, -1, -1, -1)->desc.call = ARENITE_CALL_SEQUENCE;
    n.desc.input_count = n.desc.output_count = 0;
    n.desc.subgraphs = &self;
    n.desc.subgraph_count = 1;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    status = arenite_planner_plan_graph(planner, graph, NULL, &plan);
    CHECK(status == ARENITE_ERR_ARGUMENT || status == ARENITE_ERR_UNSUPPORTED);
    CHECK(plan == UNTOUCHED(arenite_plan_t));
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void two_branches_share_bytes(void) {
    arenite_graph_t *graph = chain(2, 1024), *branch = chain(3, 1024);
    uint32_t numbers[2], index;
    arenite_plan_t *plan;
    node_t n;
    CHECK_OK(arenite_graph_attach(graph, branch, &numbers[0]));
    CHECK_OK(arenite_graph_attach(graph, branch, &numbers[1]));
    add_tensor(graph, 1024);
    fill_node(&n, 1, -1, 2, -1)->desc.call = ARENITE_CALL_BRANCH;
    n.desc.input_count = n.desc.output_count = 1;
    n.desc.subgraphs = numbers;
    n.desc.subgraph_count = 2;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    set_ends(graph, 0, 2);
    plan = plan_graph(graph, NULL);
    CHECK_OK(arenite_plan_check(plan));
    /* In, its reader, out and one branch of three: the other branch takes no more. */
    CHECK(info_of(plan).arena_bytes <= 6 * 1024);
    CHECK_EQ(info_of(plan).total_bytes, 9 * 1024);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_graph_destroy(branch));
}

static void br_47_an_index_survives_growth(void) {
    arenite_graph_t *graph = chain(2, 64);
    arenite_plan_t *plan;
    uint32_t i;
    for (i = 0; i < 200; i++) {
        const int32_t t = (int32_t)add_tensor(graph, 64 + i);
        add_node(graph, t - 1, -1, t, -1);
    }
    plan = plan_graph(graph, NULL);
    CHECK_EQ(tensor_in(plan, 0, 1).bytes, 64);
    CHECK_EQ(tensor_in(plan, 0, 2 + 150).bytes, 64 + 150);
    CHECK_OK(arenite_graph_set_bytes(graph, 2, 9999)); /* plans made before keep the old size */
    CHECK_EQ(tensor_in(plan, 0, 2).bytes, 64);
    CHECK_OK(arenite_graph_destroy(graph)); /* and outlive the graph */
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));
}

int main(void) {
    RUN(create_and_destroy);
    RUN(tensors_are_checked);
    RUN(nodes_are_checked);
    RUN(lists_are_checked);
    RUN(bad_indices_are_named);
    RUN(lifetimes_are_checked);
    RUN(the_three_policies);
    RUN(br_02_inputs_are_kept_or_reused);
    RUN(br_03_pin_one_tensor);
    RUN(br_05_input_that_is_output);
    RUN(br_06_unread_inputs_of_a_loop_body_have_storage);
    RUN(br_09_a_read_inside_a_block_is_a_read_of_its_owner);
    RUN(br_12_constants_are_not_planned);
    RUN(br_14_chain_and_keep_all);
    RUN(br_15_scratch_and_output_are_apart);
    RUN(br_21_sizes);
    RUN(variables_are_persistent);
    RUN(in_place_sharing);
    RUN(alignments_come_from_options_tensors_and_nodes);
    RUN(subgraphs_are_checked);
    RUN(calls_in_a_circle_are_refused);
    RUN(two_branches_share_bytes);
    RUN(br_47_an_index_survives_growth);
    return DONE();
}
