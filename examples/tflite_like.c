/*
 * An engine that keeps its graph as TensorFlow Lite does, and lets arenite place its tensors: its own arrays go in with a
 * cast, and come back with every data pointer set.
 *
 * The network is  input -> SCALE (by a constant) -> ACCUMULATE (adds a state that persists) -> RELU -> output.
 */
#include <arenite.h>

#include <stdio.h>
#include <string.h>

/* The engine's own structs, with the layout of TfLiteTensor and TfLiteNode in the full build. */
typedef struct {
    uint32_t type;
    float *data;
    const void *dims;
    float scale;
    int32_t zero_point;
    uint32_t allocation_type;
    size_t bytes;
    const void *allocation;
    const char *name;
    void *delegate;
    int32_t buffer_handle;
    uint8_t data_is_stale, is_variable;
    struct {
        uint32_t type;
        void *params;
    } quantization;
    void *sparsity;
    const void *dims_signature;
} engine_tensor_t;

typedef struct {
    const void *inputs, *outputs, *intermediates, *temporaries;
    void *user_data, *builtin_data;
    const void *custom_initial_data;
    int32_t custom_initial_data_size;
    void *delegate;
    uint8_t might_have_side_effect;
} engine_node_t;

enum { INPUT, FACTOR, SCALED, STATE, SUM, OUTPUT, TENSORS };
enum { SCALE, ACCUMULATE, RELU, NODES };
#define ELEMENTS 1000

static void run(const engine_tensor_t *t) {
    int i;
    for (i = 0; i < ELEMENTS; i++) {
        t[SCALED].data[i] = t[INPUT].data[i] * t[FACTOR].data[0];
    }
    for (i = 0; i < ELEMENTS; i++) { /* SUM may use SCALED's bytes */
        t[STATE].data[i] += t[SCALED].data[i];
        t[SUM].data[i] = t[STATE].data[i];
    }
    for (i = 0; i < ELEMENTS; i++) {
        t[OUTPUT].data[i] = t[SUM].data[i] > 0 ? t[SUM].data[i] : 0;
    }
}

static int failed(const char *what, arenite_status_t status, const arenite_failure_t *failure) {
    printf("%s: %s: %s\n", what, arenite_status_name(status), failure->message);
    return 1;
}

int main(void) {
    static float factor = 0.5f; /* in the model file */
    static const uint32_t types[TENSORS] = {kAreniteArenaRw, kAreniteMmapRo, kAreniteArenaRw,
                                            kAreniteArenaRw, kAreniteArenaRw, kAreniteArenaRw};
    static const ARENITE_INT_ARRAY(2) inputs[NODES] = {{2, {INPUT, FACTOR}}, {2, {SCALED, STATE}}, {1, {SUM, 0}}};
    static const ARENITE_INT_ARRAY(1) outputs[NODES] = {{1, {SCALED}}, {1, {SUM}}, {1, {OUTPUT}}};
    static const uint64_t inplace[NODES] = {0, ARENITE_INPLACE_INPUT0, ARENITE_INPLACE_INPUT0};
    static const int32_t graph_input = INPUT, graph_output = OUTPUT;
    engine_tensor_t tensors[TENSORS];
    engine_node_t nodes[NODES];
    arenite_lite_desc_t desc;
    arenite_failure_t failure;
    arenite_plan_info_t info;
    arenite_graph_t *graph = NULL;
    arenite_planner_t *planner = NULL;
    arenite_plan_t *plan = NULL;
    arenite_arena_t *arena = NULL;
    arenite_status_t status;
    int i, pass;

    /* Once at start-up: is the engine compiled with the macros that this layout stands for? */
    if (arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(engine_tensor_t), sizeof(engine_node_t)) != ARENITE_OK) {
        printf("the engine's structs are not TfLite's\n");
        return 1;
    }
    memset(tensors, 0, sizeof tensors);
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < TENSORS; i++) {
        tensors[i].allocation_type = types[i];
        tensors[i].bytes = i == FACTOR ? sizeof factor : ELEMENTS * sizeof(float);
    }
    tensors[FACTOR].data = &factor;
    tensors[STATE].is_variable = 1;
    for (i = 0; i < NODES; i++) {
        nodes[i].inputs = &inputs[i];
        nodes[i].outputs = &outputs[i];
    }

    memset(&failure, 0, sizeof failure);
    failure.struct_size = sizeof failure;
    memset(&desc, 0, sizeof desc);
    desc.struct_size = sizeof desc;
    desc.layout = ARENITE_LAYOUT_FULL;
    desc.tensors = tensors;
    desc.tensor_count = TENSORS;
    desc.nodes = nodes;
    desc.node_count = NODES;
    desc.inputs = &graph_input;
    desc.input_count = 1;
    desc.outputs = &graph_output;
    desc.output_count = 1;
    desc.inplace = inplace;
    status = arenite_graph_create_lite(&desc, &graph, &failure);
    if (status != ARENITE_OK) return failed("graph", status, &failure);
    status = arenite_planner_create(NULL, &planner, &failure);
    if (status != ARENITE_OK) return failed("planner", status, &failure);
    status = arenite_planner_plan_graph(planner, graph, NULL, &plan);
    if (status != ARENITE_OK) {
        if (arenite_planner_last_failure(planner, &failure) != ARENITE_OK) return 1;
        return failed("plan", status, &failure);
    }
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (arenite_plan_info(plan, &info) != ARENITE_OK) return 1;
    printf("arena %lu bytes for %lu bytes of tensors, %lu persistent\n", (unsigned long)info.arena_bytes,
           (unsigned long)info.total_bytes, (unsigned long)info.persistent_bytes);

    status = arenite_arena_create(plan, NULL, &arena, &failure);
    if (status != ARENITE_OK) return failed("arena", status, &failure);
    status = arenite_arena_commit(arena);
    if (status == ARENITE_OK) {
        status = arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, tensors, TENSORS);
    }
    if (status != ARENITE_OK) {
        if (arenite_arena_last_failure(arena, &failure) != ARENITE_OK) return 1;
        return failed("commit", status, &failure);
    }

    /* From here on no heap call: the state starts at zero and is kept from one pass to the next. */
    for (pass = 0; pass < 3; pass++) {
        for (i = 0; i < ELEMENTS; i++) {
            tensors[INPUT].data[i] = (float)(i - ELEMENTS / 2);
        }
        run(tensors);
        printf("pass %d: output[999] = %.1f\n", pass, (double)tensors[OUTPUT].data[999]);
    }
    i = tensors[OUTPUT].data[999] == 3 * 0.5f * 499 && tensors[OUTPUT].data[0] == 0 && tensors[SUM].data == tensors[SCALED].data;

    arenite_arena_destroy(arena);
    arenite_plan_destroy(plan);
    arenite_planner_destroy(planner);
    arenite_graph_destroy(graph);
    return i ? 0 : 1;
}
