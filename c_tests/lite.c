/* Graphs from an engine's TfLite arrays: both layouts, execution plans, strides, and arrays that contradict themselves. */
#include "lite_arrays.h"

static const uint32_t layouts[2] = {ARENITE_LAYOUT_FULL, ARENITE_LAYOUT_MICRO};

static arenite_graph_t *graph_of(const arenite_lite_desc_t *desc) {
    arenite_graph_t *graph = NULL;
    arenite_failure_t f = no_failure();
    CHECK_OK(arenite_graph_create_lite(desc, &graph, &f));
    return graph;
}

static arenite_failure_t refused(const arenite_lite_desc_t *desc, arenite_status_t status) {
    arenite_graph_t *graph = UNTOUCHED(arenite_graph_t);
    arenite_failure_t f = no_failure();
    CHECK_STATUS(arenite_graph_create_lite(desc, &graph, &f), status);
    CHECK_EQ(f.status, status);
    CHECK(graph == UNTOUCHED(arenite_graph_t));
    CHECK_STATUS(arenite_graph_create_lite(desc, &graph, NULL), status); /* the record is optional */
    return f;
}

static void both_layouts_give_the_same_graph(void) {
    size_t i;
    for (i = 0; i < 2; i++) {
        lite_t l;
        arenite_lite_desc_t d;
        arenite_graph_t *graph;
        arenite_plan_t *plan;
        lite_chain(&l);
        d = lite_desc(&l, layouts[i]);
        graph = graph_of(&d);
        memset(&l, 0x77, sizeof l); /* copied: the engine's arrays are its own again */
        plan = plan_graph(graph, NULL);
        CHECK_EQ(rounded_arena(plan), 3072);
        CHECK_EQ(info_of(plan).total_bytes, 4000);
        CHECK_EQ(tensor_in(plan, 0, 4).offset, ARENITE_NO_AMOUNT);
        CHECK_EQ(tensor_in(plan, 0, 4).bytes, 64);
        CHECK_EQ(lifetime(graph, NULL, 1).last, 1);
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_graph_destroy(graph));
    }
}

/* Nodes inside larger structs of the engine, run in another order than they lie, one of them not at all. */
static void execution_plans_and_strides(void) {
    struct {
        AreniteNode node;
        void *engines_own[3];
    } wide[3];
    const int32_t order[2] = {2, 0};
    lite_t l;
    arenite_lite_desc_t d;
    arenite_graph_t *graph;
    int i;
    lite_chain(&l);
    memset(wide, 0x77, sizeof wide);
    for (i = 0; i < 3; i++) {
        wide[i].node = l.nodes[i];
    }
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.nodes = wide;
    d.node_stride = sizeof wide[0];
    d.execution_plan = order;
    d.execution_plan_count = 2;
    graph = graph_of(&d);
    /* b -> out at step 0, in -> a at step 1. */
    CHECK_EQ(lifetime(graph, NULL, 3).first, 0);
    CHECK_EQ(lifetime(graph, NULL, 1).first, 1);
    CHECK_EQ(lifetime(graph, NULL, 1).last, 1);
    CHECK_EQ(lifetime(graph, NULL, 2).arena, ARENITE_ARENA_NONE); /* read, never written */
    CHECK_OK(arenite_graph_destroy(graph));

    d.execution_plan_count = 0; /* an empty plan is not a missing one */
    graph = graph_of(&d);
    CHECK_EQ(lifetime(graph, NULL, 1).arena, ARENITE_ARENA_NONE);
    CHECK_OK(arenite_graph_destroy(graph));
}

static void bad_descriptions_are_refused(void) {
    lite_t l;
    arenite_lite_desc_t d;
    arenite_graph_t *graph = UNTOUCHED(arenite_graph_t);
    const int32_t order[2] = {0, 3}, before[1] = {-1};
    arenite_failure_t f;
    uint64_t stride;
    lite_chain(&l);
    CHECK_EQ(refused(NULL, ARENITE_ERR_NULL).status, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    CHECK_STATUS(arenite_graph_create_lite(&d, NULL, NULL), ARENITE_ERR_NULL);
    memset(&d, 0, sizeof d); /* BR-58 */
    CHECK_STATUS(arenite_graph_create_lite(&d, &graph, NULL), ARENITE_ERR_ARGUMENT);
    INIT(d);
    refused(&d, ARENITE_ERR_ARGUMENT); /* layout 0 */
    d = lite_desc(&l, 3);
    refused(&d, ARENITE_ERR_ARGUMENT);
    d = lite_desc(&l, 0xFFFFFFFFu);
    refused(&d, ARENITE_ERR_ARGUMENT);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.flags = 1;
    refused(&d, ARENITE_ERR_ARGUMENT);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.reserved = 1;
    refused(&d, ARENITE_ERR_ARGUMENT);

    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.tensors = NULL;
    refused(&d, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.nodes = NULL;
    refused(&d, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.inputs = NULL;
    refused(&d, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.outputs = NULL;
    refused(&d, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.variables = NULL;
    d.variable_count = 1;
    refused(&d, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.execution_plan_count = 1;
    refused(&d, ARENITE_ERR_NULL);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.tensors = (const char *)l.tensors + 4;
    refused(&d, ARENITE_ERR_ALIGNMENT);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.nodes = (const char *)l.nodes + 1;
    refused(&d, ARENITE_ERR_ALIGNMENT);

    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.tensor_count = UINT64_MAX;
    refused(&d, ARENITE_ERR_OVERFLOW);
    d.tensor_count = UINT64_MAX / sizeof(AreniteTensor);
    refused(&d, ARENITE_ERR_OVERFLOW);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.node_count = UINT64_MAX;
    refused(&d, ARENITE_ERR_OVERFLOW);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.input_count = UINT64_MAX / 2;
    refused(&d, ARENITE_ERR_OVERFLOW);

    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    for (stride = 1; stride < sizeof(AreniteNode); stride++) {
        d.node_stride = stride;
        CHECK_EQ(refused(&d, ARENITE_ERR_ARGUMENT).needed, stride);
    }
    d.node_stride = sizeof(AreniteNode) + 1;
    refused(&d, ARENITE_ERR_ARGUMENT);
    d.node_stride = UINT64_MAX - 7;
    refused(&d, ARENITE_ERR_OVERFLOW);

    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.execution_plan = order;
    d.execution_plan_count = 2;
    f = refused(&d, ARENITE_ERR_ARGUMENT);
    CHECK(f.subject_kind == ARENITE_SUBJECT_NODE && f.subject_index == 1 && f.needed == 3);
    d.execution_plan = before;
    d.execution_plan_count = 1;
    refused(&d, ARENITE_ERR_ARGUMENT);
    CHECK(graph == UNTOUCHED(arenite_graph_t));
}

static void bad_tensors_and_nodes_are_named(void) {
    size_t i;
    for (i = 0; i < 2; i++) {
        const int32_t bad[] = {5, -2, INT32_MAX, INT32_MIN};
        lite_t l;
        arenite_lite_desc_t d;
        arenite_failure_t f;
        size_t k;
        lite_chain(&l);
        d = lite_desc(&l, layouts[i]);
        l.tensors[2].allocation_type = l.micro_tensors[2].allocation_type = 9;
        f = refused(&d, ARENITE_ERR_ARGUMENT);
        CHECK(f.subject_kind == ARENITE_SUBJECT_TENSOR && f.subject_index == 2 && f.needed == 9);
        l.tensors[2].allocation_type = l.micro_tensors[2].allocation_type = 0xFFFFFFFFu;
        f = refused(&d, ARENITE_ERR_ARGUMENT);
        CHECK(f.subject_kind == ARENITE_SUBJECT_TENSOR && f.subject_index == 2);
        for (k = 0; k < COUNT(bad); k++) {
            int which;
            for (which = 0; which < 2; which++) {
                lite_chain(&l);
                l.lists[1][which][1] = bad[k];
                f = refused(&d, ARENITE_ERR_ARGUMENT);
                CHECK(f.subject_kind == ARENITE_SUBJECT_NODE && f.subject_index == 1);
                CHECK_EQ(f.needed, (uint64_t)(int64_t)bad[k]);
            }
            lite_chain(&l);
            l.inputs[0] = bad[k];
            refused(&d, ARENITE_ERR_ARGUMENT);
            lite_chain(&l);
            l.outputs[0] = bad[k];
            refused(&d, ARENITE_ERR_ARGUMENT);
        }
        lite_chain(&l);
        l.lists[2][0][0] = -1; /* a negative size */
        f = refused(&d, ARENITE_ERR_ARGUMENT);
        CHECK(f.subject_kind == ARENITE_SUBJECT_NODE && f.subject_index == 2);
        lite_chain(&l);
        l.alignments[1] = 48;
        f = refused(&d, ARENITE_ERR_ALIGNMENT);
        CHECK(f.subject_kind == ARENITE_SUBJECT_NODE && f.subject_index == 1);
        lite_chain(&l);
        l.nodes[1].inputs = l.micro_nodes[1].inputs =
            (const AreniteIntArray *)(const void *)((const char *)l.lists[1][0] + 1);
        f = refused(&d, ARENITE_ERR_ALIGNMENT);
        CHECK(f.subject_kind == ARENITE_SUBJECT_NODE && f.subject_index == 1);
        lite_chain(&l);
        l.nodes[1].inputs = l.micro_nodes[1].inputs = NULL; /* a list may be missing */
        CHECK_OK(arenite_graph_destroy(graph_of(&d)));
    }
}

static void optional_arrays_and_older_callers(void) {
    lite_t l;
    arenite_lite_desc_t d;
    arenite_graph_t *graph;
    struct {
        arenite_lite_desc_t now;
        uint64_t later;
    } longer;
    uint32_t size;
    lite_chain(&l);
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    d.inplace = NULL;
    d.node_alignments = NULL;
    graph = graph_of(&d);
    CHECK_OK(arenite_graph_destroy(graph));
    longer.now = d;
    longer.later = 0;
    longer.now.struct_size = sizeof longer;
    graph = graph_of(&longer.now);
    CHECK_OK(arenite_graph_destroy(graph));
    longer.later = 1;
    refused(&longer.now, ARENITE_ERR_UNSUPPORTED);
    for (size = 0; size < sizeof d; size += 4) {
        d.struct_size = size;
        CHECK_EQ(refused(&d, ARENITE_ERR_ARGUMENT).needed, size);
    }
    memset(&l, 0, sizeof l); /* no tensors and no nodes is a graph too */
    d = lite_desc(&l, ARENITE_LAYOUT_MICRO);
    d.tensors = d.nodes = NULL;
    d.inplace = NULL;
    d.node_alignments = NULL;
    graph = graph_of(&d);
    CHECK_OK(arenite_plan_destroy(plan_graph(graph, NULL)));
    CHECK_OK(arenite_graph_destroy(graph));
}

static void node_alignments_and_in_place(void) {
    lite_t l;
    arenite_lite_desc_t d;
    arenite_graph_t *graph;
    arenite_plan_t *plan;
    lite_chain(&l);
    l.alignments[1] = 4096;
    l.inplace[1] = ARENITE_INPLACE_INPUT0;
    d = lite_desc(&l, ARENITE_LAYOUT_FULL);
    graph = graph_of(&d);
    plan = plan_graph(graph, NULL);
    CHECK_EQ(info_of(plan).alignment, 4096);
    CHECK_EQ(tensor_in(plan, 0, 1).offset % 4096, 0);
    CHECK_EQ(tensor_in(plan, 0, 2).offset, tensor_in(plan, 0, 1).offset);
    CHECK_EQ(tensor_in(plan, 0, 2).lifetime.root, 1);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
}

int main(void) {
    RUN(both_layouts_give_the_same_graph);
    RUN(execution_plans_and_strides);
    RUN(bad_descriptions_are_refused);
    RUN(bad_tensors_and_nodes_are_named);
    RUN(optional_arrays_and_older_callers);
    RUN(node_alignments_and_in_place);
    return DONE();
}
