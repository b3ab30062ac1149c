/*
 * BR-58: what a careless caller passes. Null objects and outputs, objects of another type, structs that are all zero or all
 * ones, numbers that are no member of their enumeration, counts that cannot be: a status each time, outputs untouched.
 */
#include <arenite.h>

#include "check.h"

#define NONSENSE 0xFFFFFFFFu

static arenite_graph_t *graph;
static arenite_planner_t *planner;
static arenite_plan_t *plan;
static arenite_arena_t *arena;

/* One tensor written by one node and an output, planned and committed. */
static void set_up(void) {
    arenite_tensor_desc_t tensor;
    arenite_node_desc_t node;
    const int32_t zero = 0;
    uint32_t index;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    tensor.bytes = 100;
    tensor.allocation_type = kAreniteArenaRw;
    memset(&node, 0, sizeof node);
    node.struct_size = sizeof node;
    node.outputs = &zero;
    node.output_count = 1;
    CHECK_OK(arenite_graph_create(&graph));
    CHECK_OK(arenite_graph_add_tensor(graph, &tensor, &index));
    CHECK_OK(arenite_graph_add_node(graph, &node, &index));
    CHECK_OK(arenite_graph_set_outputs(graph, &zero, 1));
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

static void null_objects_are_refused(void) {
    arenite_failure_t record;
    arenite_graph_t *no_graph = NULL;
    arenite_planner_t *no_planner = NULL;
    arenite_plan_t *no_plan = NULL;
    arenite_arena_t *no_arena = NULL;
    arenite_plan_t *out_plan = NULL;
    uint64_t number;
    uint32_t index;
    size_t bytes;
    void *data;
    memset(&record, 0, sizeof record);
    record.struct_size = sizeof record;

    CHECK_STATUS(arenite_graph_add_tensor(no_graph, NULL, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_node(no_graph, NULL, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_inputs(no_graph, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_outputs(no_graph, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_variables(no_graph, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_bytes(no_graph, 0, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_pin(no_graph, 0, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_attach(no_graph, graph, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_attach(graph, no_graph, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_lifetimes(no_graph, NULL, 0, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_last_failure(no_graph, &record), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_add(no_planner, NULL, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_alias(no_planner, 0, 0, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_clear(no_planner), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan(no_planner, &out_plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan_graph(no_planner, graph, NULL, &out_plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan_graph(planner, no_graph, NULL, &out_plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_check(no_planner, NULL, 0, &number), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_last_failure(no_planner, &record), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_info(no_plan, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_offset(no_plan, 0, &number), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_tensor(no_plan, 0, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_required_bytes(no_plan, ARENITE_ARENA_MAIN, NULL, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_check(no_plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_last_failure(no_plan, &record), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_create(no_plan, NULL, &no_arena, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_commit(no_arena), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_release(no_arena), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_resolve(no_arena, 0, 0, &data, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_assign(no_arena, 0, ARENITE_LAYOUT_FULL, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_bind_constant(no_arena, 0, 0, NULL, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_generation(no_arena, &number), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_committed_bytes(no_arena, ARENITE_ARENA_MAIN, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_last_failure(no_arena, &record), ARENITE_ERR_NULL);

    CHECK_OK(arenite_graph_destroy(no_graph));
    CHECK_OK(arenite_planner_destroy(no_planner));
    CHECK_OK(arenite_plan_destroy(no_plan));
    CHECK_OK(arenite_arena_destroy(no_arena));
    CHECK(out_plan == NULL && no_arena == NULL);
}

static void null_outputs_are_refused(void) {
    arenite_tensor_desc_t tensor;
    uint64_t number;
    size_t bytes;
    void *data;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    CHECK_STATUS(arenite_graph_create(NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_tensor(graph, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_add_tensor(graph, &tensor, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_attach(graph, graph, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_last_failure(graph, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_create(NULL, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan(planner, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan_graph(planner, graph, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_info(plan, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_offset(plan, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_tensor(plan, 0, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_create(plan, NULL, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_resolve(arena, 0, 0, NULL, &bytes), ARENITE_ERR_NULL);
    CHECK_OK(arenite_arena_resolve(arena, 0, 0, &data, NULL)); /* the size is optional */
    CHECK_STATUS(arenite_arena_generation(arena, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_committed_bytes(arena, ARENITE_ARENA_MAIN, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_set_outputs(graph, NULL, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_graph_lifetimes(graph, NULL, 0, NULL, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_check(planner, NULL, 1, &number), ARENITE_ERR_NULL);
}

static void one_object_in_two_places_is_refused(void) {
    uint32_t index = 77;
    CHECK_STATUS(arenite_graph_attach(graph, graph, &index), ARENITE_ERR_BUSY);
    CHECK_EQ(index, 77);
}

static void objects_of_another_type_are_refused(void) {
    uint64_t number;
    CHECK_STATUS(arenite_planner_clear((arenite_planner_t *)(void *)graph), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_check((const arenite_plan_t *)(const void *)planner), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_generation((const arenite_arena_t *)(const void *)plan, &number), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_destroy((arenite_graph_t *)(void *)arena), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_destroy((arenite_arena_t *)(void *)graph), ARENITE_ERR_ARGUMENT);
}

/* Runs every function that takes a struct, with each struct filled with one byte. */
static void structs_filled_with(int byte) {
    arenite_lite_desc_t lite;
    arenite_tensor_desc_t tensor;
    arenite_node_desc_t node;
    arenite_graph_options_t graph_options;
    arenite_planner_options_t planner_options;
    arenite_buffer_desc_t buffer;
    arenite_plan_info_t info;
    arenite_plan_tensor_t plan_tensor;
    arenite_arena_options_t arena_options;
    arenite_failure_t record;
    arenite_graph_t *out_graph = NULL;
    arenite_planner_t *out_planner = NULL;
    arenite_plan_t *out_plan = NULL;
    arenite_arena_t *out_arena = NULL;
    uint32_t index = 77;
    memset(&lite, byte, sizeof lite);
    memset(&tensor, byte, sizeof tensor);
    memset(&node, byte, sizeof node);
    memset(&graph_options, byte, sizeof graph_options);
    memset(&planner_options, byte, sizeof planner_options);
    memset(&buffer, byte, sizeof buffer);
    memset(&info, byte, sizeof info);
    memset(&plan_tensor, byte, sizeof plan_tensor);
    memset(&arena_options, byte, sizeof arena_options);
    memset(&record, byte, sizeof record);
    CHECK_STATUS(arenite_graph_create_lite(&lite, &out_graph, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_add_tensor(graph, &tensor, &index), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_add_node(graph, &node, &index), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_lifetimes(graph, &graph_options, 0, NULL, 0), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_create(&planner_options, &out_planner, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_add(planner, &buffer, &index), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_plan_graph(planner, graph, &graph_options, &out_plan), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_info(plan, &info), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_tensor(plan, 0, 0, &plan_tensor), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_create(plan, &arena_options, &out_arena, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_last_failure(graph, &record), ARENITE_ERR_ARGUMENT);
    /* A record that is refused does not hide the status of the call. */
    CHECK_STATUS(arenite_planner_create(&planner_options, &out_planner, &record), ARENITE_ERR_ARGUMENT);
    CHECK(out_graph == NULL && out_planner == NULL && out_plan == NULL && out_arena == NULL && index == 77);
    CHECK(((unsigned char *)&info)[sizeof info - 1] == (unsigned char)byte);
}

static void structs_of_zeros_are_refused(void) {
    structs_filled_with(0);
}

static void structs_of_ones_are_refused(void) {
    structs_filled_with(0xFF);
}

static void numbers_of_no_enumeration_are_refused(void) {
    arenite_tensor_desc_t tensor;
    arenite_planner_options_t planner_options;
    arenite_graph_options_t graph_options;
    arenite_arena_options_t arena_options;
    arenite_failure_t record;
    arenite_planner_t *out_planner = NULL;
    arenite_plan_t *out_plan = NULL;
    arenite_arena_t *out_arena = NULL;
    uint32_t index;
    size_t bytes;

    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    tensor.allocation_type = NONSENSE;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &tensor, &index), ARENITE_ERR_ARGUMENT);
    tensor.allocation_type = kAreniteArenaRw;
    tensor.flags = 1u << 31;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &tensor, &index), ARENITE_ERR_ARGUMENT);
    tensor.flags = 0;
    tensor.alignment = 3;
    CHECK_STATUS(arenite_graph_add_tensor(graph, &tensor, &index), ARENITE_ERR_ALIGNMENT);

    memset(&planner_options, 0, sizeof planner_options);
    planner_options.struct_size = sizeof planner_options;
    planner_options.strategy = NONSENSE;
    memset(&record, 0, sizeof record);
    record.struct_size = sizeof record;
    CHECK_STATUS(arenite_planner_create(&planner_options, &out_planner, &record), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(record.status, ARENITE_ERR_ARGUMENT);
    CHECK_EQ(record.needed, NONSENSE);
    CHECK(strlen(record.message) > 0);

    memset(&graph_options, 0, sizeof graph_options);
    graph_options.struct_size = sizeof graph_options;
    graph_options.policy = NONSENSE;
    CHECK_STATUS(arenite_planner_plan_graph(planner, graph, &graph_options, &out_plan), ARENITE_ERR_ARGUMENT);

    memset(&arena_options, 0, sizeof arena_options);
    arena_options.struct_size = sizeof arena_options;
    arena_options.main.kind = NONSENSE;
    CHECK_STATUS(arenite_arena_create(plan, &arena_options, &out_arena, NULL), ARENITE_ERR_ARGUMENT);

    CHECK_STATUS(arenite_plan_required_bytes(plan, NONSENSE, NULL, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_committed_bytes(arena, NONSENSE, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_assign(arena, 0, NONSENSE, NULL, 0), ARENITE_ERR_ARGUMENT);
    CHECK(out_planner == NULL && out_plan == NULL && out_arena == NULL);
}

static void indices_and_counts_that_cannot_be_are_refused(void) {
    arenite_plan_tensor_t tensor;
    const int32_t outputs[] = {0};
    uint64_t number = 5;
    size_t bytes = 6;
    void *data = NULL;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    CHECK_STATUS(arenite_plan_tensor(plan, NONSENSE, 0, &tensor), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_tensor(plan, 0, NONSENSE, &tensor), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_plan_offset(plan, NONSENSE, &number), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_resolve(arena, NONSENSE, 0, &data, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_resolve(arena, 0, NONSENSE, &data, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_set_bytes(graph, NONSENSE, 1), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_graph_set_outputs(graph, outputs, UINT64_MAX), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_graph_set_outputs(graph, outputs, UINT64_MAX / 4), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_planner_alias(planner, NONSENSE, NONSENSE, UINT64_MAX), ARENITE_ERR_ARGUMENT);
    CHECK(number == 5 && bytes == 6 && data == NULL);
}

static void the_objects_still_work(void) {
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_arena_resolve(arena, 0, 0, &data, &bytes));
    CHECK_EQ(bytes, 100);
    CHECK_EQ((uintptr_t)data % 128, 0);
    if (data != NULL) {
        memset(data, 0x5A, bytes);
    }
}

int main(void) {
    set_up();
    RUN(null_objects_are_refused);
    RUN(null_outputs_are_refused);
    RUN(one_object_in_two_places_is_refused);
    RUN(objects_of_another_type_are_refused);
    RUN(structs_of_zeros_are_refused);
    RUN(structs_of_ones_are_refused);
    RUN(numbers_of_no_enumeration_are_refused);
    RUN(indices_and_counts_that_cannot_be_are_refused);
    RUN(the_objects_still_work);
    tear_down();
    return DONE();
}
