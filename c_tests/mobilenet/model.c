#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int32_t at(const AreniteIntArray *array, int i) { return arenite_int_array_data(array)[i]; }

float noise(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static const AreniteIntArray *list(model_t *m, int n, const int32_t *values) {
    int32_t *place = &m->lists[m->list_used];
    if (m->list_used + n + 1 > MODEL_LISTS) {
        abort();
    }
    place[0] = n;
    memcpy(place + 1, values, (size_t)n * sizeof *values);
    m->list_used += n + 1;
    return (const AreniteIntArray *)place;
}

static int32_t tensor(model_t *m, uint32_t allocation_type, int n, const int32_t *dims) {
    AreniteTensor *t = &m->tensors[m->tensor_count];
    size_t elements = 1;
    int i;
    if (m->tensor_count == MODEL_TENSORS) {
        abort();
    }
    for (i = 0; i < n; i++) {
        elements *= (size_t)dims[i];
    }
    t->kind = 1; /* float, as TfLite numbers it */
    t->dims = list(m, n, dims);
    t->bytes = elements * sizeof(float);
    t->allocation_type = allocation_type;
    if (allocation_type == kAreniteMmapRo) {
        m->weight_count += elements;
    }
    return m->tensor_count++;
}

static int32_t activation(model_t *m, int height, int width, int channels) {
    const int32_t dims[4] = {1, height, width, channels};
    return tensor(m, kAreniteArenaRw, 4, dims);
}

static void node(model_t *m, op_t op, int stride, int relu6, int n, const int32_t *inputs, int32_t output) {
    const layer_t layer = {op, stride, relu6};
    if (m->node_count == MODEL_NODES) {
        abort();
    }
    m->layers[m->node_count] = layer;
    m->nodes[m->node_count].inputs = list(m, n, inputs);
    m->nodes[m->node_count].outputs = list(m, 1, &output);
    m->node_count++;
}

static int same(int size, int stride) { return (size + stride - 1) / stride; }

/* A convolution with bias, kernel size x size: pointwise at size 1. Weights lie as height, width, in, out. */
static int32_t conv(model_t *m, int32_t input, int size, int channels, int stride, int relu6) {
    const AreniteIntArray *dims = m->tensors[input].dims;
    const int32_t weight_dims[4] = {size, size, at(dims, 3), channels};
    int32_t inputs[3];
    int32_t output;
    inputs[0] = input;
    inputs[1] = tensor(m, kAreniteMmapRo, 4, weight_dims);
    inputs[2] = tensor(m, kAreniteMmapRo, 1, &weight_dims[3]);
    output = activation(m, same(at(dims, 1), stride), same(at(dims, 2), stride), channels);
    node(m, OP_CONV, stride, relu6, 3, inputs, output);
    return output;
}

static int32_t depthwise(model_t *m, int32_t input, int stride) {
    const AreniteIntArray *dims = m->tensors[input].dims;
    const int32_t weight_dims[3] = {3, 3, at(dims, 3)};
    int32_t inputs[3];
    int32_t output;
    inputs[0] = input;
    inputs[1] = tensor(m, kAreniteMmapRo, 3, weight_dims);
    inputs[2] = tensor(m, kAreniteMmapRo, 1, &weight_dims[2]);
    output = activation(m, same(at(dims, 1), stride), same(at(dims, 2), stride), weight_dims[2]);
    node(m, OP_DEPTHWISE, stride, 1, 3, inputs, output);
    return output;
}

/* Expand, filter, project; the result is added to the input where the shapes allow it. */
static int32_t inverted_residual(model_t *m, int32_t input, int expansion, int channels, int stride) {
    const int in_channels = at(m->tensors[input].dims, 3);
    int32_t x = input;
    if (expansion > 1) {
        x = conv(m, x, 1, in_channels * expansion, 1, 1);
    }
    x = depthwise(m, x, stride);
    x = conv(m, x, 1, channels, 1, 0);
    if (stride == 1 && in_channels == channels) {
        const AreniteIntArray *dims = m->tensors[x].dims;
        int32_t inputs[2];
        const int32_t output = activation(m, at(dims, 1), at(dims, 2), channels);
        inputs[0] = input;
        inputs[1] = x;
        m->inplace[m->node_count] = ARENITE_INPLACE_INPUT0 | ARENITE_INPLACE_INPUT1;
        node(m, OP_ADD, 1, 0, 2, inputs, output);
        x = output;
    }
    return x;
}

static void fill_weights(model_t *m, uint32_t seed) {
    float *next = m->weights;
    int t;
    for (t = 0; t < m->tensor_count; t++) {
        AreniteTensor *x = &m->tensors[t];
        size_t i, n = x->bytes / sizeof(float), fan_in = n;
        float scale;
        if (x->allocation_type != kAreniteMmapRo) {
            continue;
        }
        /* Per output channel, which is the last dimension; keeps the sums of every layer near 1. */
        fan_in /= (size_t)at(x->dims, x->dims->size - 1);
        scale = x->dims->size == 1 ? 0.1f : sqrtf(3.0f / (float)fan_in);
        for (i = 0; i < n; i++) {
            next[i] = noise(&seed) * scale;
        }
        x->data = next;
        next += n;
    }
}

int model_build(model_t *m, int resolution, uint32_t seed) {
    /* Expansion, channels, repeats, stride of the first. */
    static const int blocks[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                     {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int32_t x, output, inputs[3];
    int b, i;
    const int32_t flat[2] = {1, 1280}, classes[2] = {1, MODEL_CLASSES}, dense[2] = {1280, MODEL_CLASSES};
    memset(m, 0, sizeof *m);
    x = m->input = activation(m, resolution, resolution, 3);
    x = conv(m, x, 3, 32, 2, 1);
    for (b = 0; b < 7; b++) {
        for (i = 0; i < blocks[b][2]; i++) {
            x = inverted_residual(m, x, blocks[b][0], blocks[b][1], i == 0 ? blocks[b][3] : 1);
        }
    }
    x = conv(m, x, 1, 1280, 1, 1);
    output = activation(m, 1, 1, 1280);
    node(m, OP_POOL, 1, 0, 1, &x, output);
    x = output;
    output = tensor(m, kAreniteArenaRw, 2, flat);
    m->inplace[m->node_count] = ARENITE_INPLACE_INPUT0 | ARENITE_INPLACE_DATA_UNMODIFIED;
    node(m, OP_RESHAPE, 1, 0, 1, &x, output);
    inputs[0] = output;
    inputs[1] = tensor(m, kAreniteMmapRo, 2, dense);
    inputs[2] = tensor(m, kAreniteMmapRo, 1, &classes[1]);
    x = tensor(m, kAreniteArenaRw, 2, classes);
    node(m, OP_FULLY_CONNECTED, 1, 0, 3, inputs, x);
    m->output = tensor(m, kAreniteArenaRw, 2, classes);
    m->inplace[m->node_count] = ARENITE_INPLACE_INPUT0;
    node(m, OP_SOFTMAX, 1, 0, 1, &x, m->output);

    m->weights = (float *)malloc(m->weight_count * sizeof(float));
    if (m->weights == NULL) {
        return 0;
    }
    fill_weights(m, seed);
    return 1;
}

void model_free(model_t *m) { free(m->weights); }
