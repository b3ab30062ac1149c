/*
 * MobileNetV2 1.0 (Sandler et al., 2018) as an engine would hold it: TfLite-style tensor and node arrays. The layer table
 * is the paper's table 2; the weights are seeded noise, since memory planning does not depend on them.
 */
#ifndef MOBILENET_MODEL_H
#define MOBILENET_MODEL_H

#include <arenite.h>

#define MODEL_TENSORS 192
#define MODEL_NODES 72
#define MODEL_LISTS 2048
#define MODEL_CLASSES 1001

typedef enum { OP_CONV, OP_DEPTHWISE, OP_ADD, OP_POOL, OP_RESHAPE, OP_FULLY_CONNECTED, OP_SOFTMAX } op_t;

/* What the kernel of a node needs besides its tensors. */
typedef struct {
    op_t op;
    int stride;
    int relu6;
} layer_t;

typedef struct {
    AreniteTensor tensors[MODEL_TENSORS];
    AreniteNode nodes[MODEL_NODES];
    layer_t layers[MODEL_NODES];
    uint64_t inplace[MODEL_NODES]; /* which inputs a node may overwrite */
    int tensor_count, node_count;
    int32_t input, output;
    int32_t lists[MODEL_LISTS]; /* the int arrays that tensors and nodes point to */
    int list_used;
    float *weights; /* of all layers, one after the other: the engine's mapped file */
    size_t weight_count;
} model_t;

/* Builds the network for square images. Returns 0 when memory is short. */
int model_build(model_t *m, int resolution, uint32_t seed);
void model_free(model_t *m);

/* Element `i` of an int array. */
int32_t at(const AreniteIntArray *array, int i);

/* The next number of a seeded stream, uniform in [-1, 1). */
float noise(uint32_t *state);

#endif
