/* An engine's TfLite arrays in both layouts at once, for the tests that plan them. Include after helpers.h. */
#ifndef ARENITE_LITE_ARRAYS_H
#define ARENITE_LITE_ARRAYS_H

#include "helpers.h"

#define LITE_MOST 24

typedef struct {
    AreniteTensor tensors[LITE_MOST];
    AreniteMicroTensor micro_tensors[LITE_MOST];
    AreniteNode nodes[LITE_MOST];
    AreniteMicroNode micro_nodes[LITE_MOST];
    int32_t lists[LITE_MOST][3][5]; /* inputs, outputs, temporaries of each node, their size first */
    uint64_t inplace[LITE_MOST];
    uint32_t alignments[LITE_MOST];
    int32_t inputs[3], outputs[3], variables[2];
    uint64_t tensor_count, node_count, input_count, output_count, variable_count;
} lite_t;

static inline void lite_tensor(lite_t *l, size_t bytes, uint32_t allocation_type) {
    l->tensors[l->tensor_count].bytes = l->micro_tensors[l->tensor_count].bytes = bytes;
    l->tensors[l->tensor_count].allocation_type = l->micro_tensors[l->tensor_count].allocation_type = allocation_type;
    l->tensor_count++;
}

/* Adds a number to list 0 (inputs), 1 (outputs) or 2 (temporaries) of the last node. */
static inline void lite_list(lite_t *l, int which, int32_t tensor) {
    int32_t *list = l->lists[l->node_count - 1][which];
    list[++list[0]] = tensor;
}

static inline void lite_node(lite_t *l) {
    const uint64_t n = l->node_count++;
    l->nodes[n].inputs = l->micro_nodes[n].inputs = (const AreniteIntArray *)(const void *)l->lists[n][0];
    l->nodes[n].outputs = l->micro_nodes[n].outputs = (const AreniteIntArray *)(const void *)l->lists[n][1];
    l->nodes[n].temporaries = (const AreniteIntArray *)(const void *)l->lists[n][2];
}

static inline arenite_lite_desc_t lite_desc(const lite_t *l, uint32_t layout) {
    const int full = layout == ARENITE_LAYOUT_FULL;
    arenite_lite_desc_t d;
    INIT(d);
    d.layout = layout;
    d.tensors = full ? (const void *)l->tensors : (const void *)l->micro_tensors;
    d.tensor_count = l->tensor_count;
    d.nodes = full ? (const void *)l->nodes : (const void *)l->micro_nodes;
    d.node_count = l->node_count;
    d.inputs = l->inputs;
    d.input_count = l->input_count;
    d.outputs = l->outputs;
    d.output_count = l->output_count;
    d.variables = l->variables;
    d.variable_count = l->variable_count;
    d.inplace = l->inplace;
    d.node_alignments = l->alignments;
    return d;
}

/* in 1000 -> a 1000 -> b 1000 -> out 1000, and a constant of 64 that the first node reads. */
static inline void lite_chain(lite_t *l) {
    int i;
    memset(l, 0, sizeof *l);
    for (i = 0; i < 4; i++) {
        lite_tensor(l, 1000, kAreniteArenaRw);
    }
    lite_tensor(l, 64, kAreniteMmapRo);
    for (i = 0; i < 3; i++) {
        lite_node(l);
        lite_list(l, 0, i);
        lite_list(l, 1, i + 1);
    }
    l->lists[0][0][++l->lists[0][0][0]] = 4;
    l->inputs[0] = 0;
    l->outputs[0] = 3;
    l->input_count = l->output_count = 1;
}

/* A seeded graph: each node reads up to three earlier tensors and writes up to two new ones. */
static inline void lite_random(lite_t *l, uint32_t *state, int temporaries) {
    static const uint32_t types[8] = {kAreniteArenaRw, kAreniteArenaRw, kAreniteArenaRw, kAreniteArenaRw,
                                      kAreniteArenaRw, kAreniteArenaRw, kAreniteDynamic, kAreniteArenaRwPersistent};
    const uint32_t nodes = 2 + next_random(state) % 6;
    uint32_t n, k;
    memset(l, 0, sizeof *l);
    lite_tensor(l, 1 + next_random(state) % 500, kAreniteArenaRw);
    lite_tensor(l, 64, kAreniteMmapRo);
    for (n = 0; n < nodes; n++) {
        const uint32_t reads = next_random(state) % 4, writes = 1 + next_random(state) % 2;
        const uint32_t size = next_random(state) % 3 == 0 ? 256 : next_random(state) % 2000;
        lite_node(l);
        for (k = 0; k < reads; k++) {
            lite_list(l, 0, (int32_t)(next_random(state) % (uint32_t)(l->tensor_count + 1)) - 1);
        }
        for (k = 0; k < writes; k++) {
            lite_list(l, 1, (int32_t)l->tensor_count);
            lite_tensor(l, size, types[next_random(state) % 8]);
        }
        if (temporaries && next_random(state) % 3 == 0) {
            lite_list(l, 2, (int32_t)l->tensor_count);
            lite_tensor(l, next_random(state) % 900, kAreniteArenaRw);
        }
        l->inplace[n] = next_random(state) % 32;
        l->alignments[n] = next_random(state) % 4 == 0 ? 1u << next_random(state) % 10 : 0;
    }
    l->inputs[0] = 0;
    l->outputs[0] = (int32_t)l->tensor_count - 1;
    l->outputs[1] = (int32_t)(next_random(state) % (uint32_t)l->tensor_count);
    l->variables[0] = (int32_t)(next_random(state) % (uint32_t)l->tensor_count);
    l->input_count = 1;
    l->output_count = 1 + next_random(state) % 2;
    l->variable_count = next_random(state) % 4 == 0;
}

#endif
