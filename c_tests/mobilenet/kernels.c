#include "kernels.h"

#include <math.h>
#include <string.h>

static float relu6(float x) { return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x; }

static float *floats(const AreniteTensor *t) { return (float *)t->data; }

/* Rows or columns of padding before the first: SAME, with the odd one at the end. */
static int pad_before(int input, int output, int stride, int size) {
    const int total = (output - 1) * stride + size - input;
    return total > 0 ? total / 2 : 0;
}

static void conv(const AreniteTensor *in, const AreniteTensor *weights, const AreniteTensor *bias,
                 const AreniteTensor *out, const layer_t *layer) {
    const int height = at(in->dims, 1), width = at(in->dims, 2), channels = at(in->dims, 3);
    const int out_height = at(out->dims, 1), out_width = at(out->dims, 2), out_channels = at(out->dims, 3);
    const int size = at(weights->dims, 0), stride = layer->stride;
    const int top = pad_before(height, out_height, stride, size), left = pad_before(width, out_width, stride, size);
    int y, x, ky, kx, c, o;
    for (y = 0; y < out_height; y++) {
        for (x = 0; x < out_width; x++) {
            float *pixel = floats(out) + ((size_t)y * out_width + x) * out_channels;
            memcpy(pixel, bias->data, (size_t)out_channels * sizeof(float));
            for (ky = 0; ky < size; ky++) {
                const int iy = y * stride + ky - top;
                for (kx = 0; kx < size; kx++) {
                    const int ix = x * stride + kx - left;
                    const float *from, *w;
                    if (iy < 0 || iy >= height || ix < 0 || ix >= width) {
                        continue;
                    }
                    from = floats(in) + ((size_t)iy * width + ix) * channels;
                    w = floats(weights) + ((size_t)ky * size + kx) * channels * out_channels;
                    for (c = 0; c < channels; c++) {
                        const float value = from[c];
                        for (o = 0; o < out_channels; o++) {
                            pixel[o] += value * w[o];
                        }
                        w += out_channels;
                    }
                }
            }
            if (layer->relu6) {
                for (o = 0; o < out_channels; o++) {
                    pixel[o] = relu6(pixel[o]);
                }
            }
        }
    }
}

static void depthwise(const AreniteTensor *in, const AreniteTensor *weights, const AreniteTensor *bias,
                      const AreniteTensor *out, const layer_t *layer) {
    const int height = at(in->dims, 1), width = at(in->dims, 2), channels = at(in->dims, 3);
    const int out_height = at(out->dims, 1), out_width = at(out->dims, 2), stride = layer->stride;
    const int top = pad_before(height, out_height, stride, 3), left = pad_before(width, out_width, stride, 3);
    int y, x, ky, kx, c;
    for (y = 0; y < out_height; y++) {
        for (x = 0; x < out_width; x++) {
            float *pixel = floats(out) + ((size_t)y * out_width + x) * channels;
            memcpy(pixel, bias->data, (size_t)channels * sizeof(float));
            for (ky = 0; ky < 3; ky++) {
                const int iy = y * stride + ky - top;
                for (kx = 0; kx < 3; kx++) {
                    const int ix = x * stride + kx - left;
                    const float *from, *w = floats(weights) + (size_t)(ky * 3 + kx) * channels;
                    if (iy < 0 || iy >= height || ix < 0 || ix >= width) {
                        continue;
                    }
                    from = floats(in) + ((size_t)iy * width + ix) * channels;
                    for (c = 0; c < channels; c++) {
                        pixel[c] += from[c] * w[c];
                    }
                }
            }
            for (c = 0; c < channels; c++) {
                pixel[c] = relu6(pixel[c]);
            }
        }
    }
}

/* The output may be one of the inputs. */
static void add(const AreniteTensor *a, const AreniteTensor *b, const AreniteTensor *out) {
    const size_t n = out->bytes / sizeof(float);
    size_t i;
    for (i = 0; i < n; i++) {
        floats(out)[i] = floats(a)[i] + floats(b)[i];
    }
}

static void average_pool(const AreniteTensor *in, const AreniteTensor *out) {
    const int pixels = at(in->dims, 1) * at(in->dims, 2), channels = at(in->dims, 3);
    int p, c;
    memset(out->data, 0, out->bytes);
    for (p = 0; p < pixels; p++) {
        for (c = 0; c < channels; c++) {
            floats(out)[c] += floats(in)[(size_t)p * channels + c];
        }
    }
    for (c = 0; c < channels; c++) {
        floats(out)[c] /= (float)pixels;
    }
}

static void fully_connected(const AreniteTensor *in, const AreniteTensor *weights, const AreniteTensor *bias,
                            const AreniteTensor *out) {
    const int n = at(weights->dims, 0), classes = at(weights->dims, 1);
    int i, o;
    memcpy(out->data, bias->data, out->bytes);
    for (i = 0; i < n; i++) {
        const float value = floats(in)[i], *w = floats(weights) + (size_t)i * classes;
        for (o = 0; o < classes; o++) {
            floats(out)[o] += value * w[o];
        }
    }
}

/* The output may be the input. */
static void softmax(const AreniteTensor *in, const AreniteTensor *out) {
    const int n = at(in->dims, 1);
    float most = floats(in)[0], sum = 0.0f;
    int i;
    for (i = 1; i < n; i++) {
        most = floats(in)[i] > most ? floats(in)[i] : most;
    }
    for (i = 0; i < n; i++) {
        floats(out)[i] = expf(floats(in)[i] - most);
        sum += floats(out)[i];
    }
    for (i = 0; i < n; i++) {
        floats(out)[i] /= sum;
    }
}

void run_node(const model_t *m, int node, const AreniteTensor *tensors) {
    const AreniteNode *n = &m->nodes[node];
    const layer_t *layer = &m->layers[node];
    const AreniteTensor *in = &tensors[at(n->inputs, 0)], *out = &tensors[at(n->outputs, 0)];
    switch (layer->op) {
        case OP_CONV:
            conv(in, &tensors[at(n->inputs, 1)], &tensors[at(n->inputs, 2)], out, layer);
            break;
        case OP_DEPTHWISE:
            depthwise(in, &tensors[at(n->inputs, 1)], &tensors[at(n->inputs, 2)], out, layer);
            break;
        case OP_ADD:
            add(in, &tensors[at(n->inputs, 1)], out);
            break;
        case OP_POOL:
            average_pool(in, out);
            break;
        case OP_RESHAPE:
            if (out->data != in->data) {
                memcpy(out->data, in->data, out->bytes);
            }
            break;
        case OP_FULLY_CONNECTED:
            fully_connected(in, &tensors[at(n->inputs, 1)], &tensors[at(n->inputs, 2)], out);
            break;
        case OP_SOFTMAX:
            softmax(in, out);
            break;
    }
}
