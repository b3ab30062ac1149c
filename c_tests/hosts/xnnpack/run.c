/*
 * Convolution networks of three sizes in XNNPACK, with its own allocator or arenite's.
 *
 *   run alone|arenite OUTPUTS
 *
 * XNNPACK takes one allocator per process, so each setting is a process of its own; OUTPUTS gets every output's bytes.
 */
#include <arenite.h>
#include <arenite/xnnpack.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack.h>

#define CHECK(call)                                                 \
    do {                                                            \
        int status = (int)(call);                                   \
        if (status != 0) {                                          \
            fprintf(stderr, "%s: status %d\n", #call, status);      \
            exit(1);                                                \
        }                                                           \
    } while (0)

enum { LAYERS = 6 };
static const size_t channels[LAYERS + 1] = {8, 32, 16, 64, 24, 64, 8};

static arenite_pool_t *pool;

static arenite_pool_stats_t stats(void) {
    arenite_pool_stats_t s;
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    if (pool != NULL) {
        CHECK(arenite_pool_stats(pool, &s));
    }
    return s;
}

static float *floats(size_t count, float scale) {
    float *data = (float *)malloc((count + 16) * sizeof(float)); /* XNNPACK reads up to 16 bytes further */
    size_t i;
    for (i = 0; i < count + 16; i++) {
        data[i] = scale * ((float)(i % 251) / 251.0f - 0.4f);
    }
    return data;
}

static void network(size_t side, FILE *out) {
    xnn_subgraph_t graph;
    xnn_runtime_t runtime;
    uint32_t id[LAYERS + 1];
    float *weights[LAYERS], *bias[LAYERS];
    const size_t values = side * side * channels[0];
    float *input = floats(values, 1.0f), *output = floats(values, 0.0f);
    arenite_pool_stats_t before, created, run;
    int i;
    CHECK(xnn_create_subgraph(2, 0, &graph));
    for (i = 0; i <= LAYERS; i++) {
        const size_t dims[4] = {1, side, side, channels[i]};
        const uint32_t external = i == 0 ? 0 : i == LAYERS ? 1 : XNN_INVALID_VALUE_ID;
        const uint32_t flags = i == 0        ? XNN_VALUE_FLAG_EXTERNAL_INPUT
                               : i == LAYERS ? XNN_VALUE_FLAG_EXTERNAL_OUTPUT
                                             : 0;
        CHECK(xnn_define_tensor_value(graph, xnn_datatype_fp32, 4, dims, NULL, external, flags, &id[i]));
    }
    for (i = 0; i < LAYERS; i++) {
        const size_t filter[4] = {channels[i + 1], 3, 3, channels[i]};
        uint32_t w, b;
        weights[i] = floats(filter[0] * 9 * filter[3], 0.1f);
        bias[i] = floats(filter[0], 0.1f);
        CHECK(xnn_define_tensor_value(graph, xnn_datatype_fp32, 4, filter, weights[i], XNN_INVALID_VALUE_ID, 0, &w));
        CHECK(xnn_define_tensor_value(graph, xnn_datatype_fp32, 1, filter, bias[i], XNN_INVALID_VALUE_ID, 0, &b));
        CHECK(xnn_define_convolution_2d(graph, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, channels[i], channels[i + 1], -1e30f, 1e30f,
                                        id[i], w, b, id[i + 1], 0));
    }
    before = stats();
    CHECK(xnn_create_runtime_v2(graph, NULL, 0, &runtime));
    {
        const struct xnn_external_value external[2] = {{id[0], input}, {id[LAYERS], output}};
        CHECK(xnn_setup_runtime(runtime, 2, external));
    }
    created = stats();
    for (i = 0; i < 3; i++) {
        CHECK(xnn_invoke_runtime(runtime));
    }
    run = stats();
    if (pool != NULL) {
        printf("%zux%zu: the runtime has %llu blocks of %llu bytes; 3 inferences changed %lld blocks; pool %llu bytes\n", side,
               side, (unsigned long long)(created.blocks - before.blocks),
               (unsigned long long)(created.requested_bytes - before.requested_bytes),
               (long long)run.blocks - (long long)created.blocks, (unsigned long long)run.reserved_bytes);
    }
    fwrite(output, sizeof(float), values, out);
    CHECK(xnn_delete_runtime(runtime));
    CHECK(xnn_delete_subgraph(graph));
    for (i = 0; i < LAYERS; i++) {
        free(weights[i]);
        free(bias[i]);
    }
    free(input);
    free(output);
}

int main(int argc, char **argv) {
    static const size_t sides[] = {112, 64, 96, 112};
    FILE *out;
    size_t i;
    if (argc != 3 || (out = fopen(argv[2], "wb")) == NULL) {
        fprintf(stderr, "usage: run alone|arenite OUTPUTS\n");
        return 2;
    }
    if (strcmp(argv[1], "arenite") == 0) {
        CHECK(arenite_pool_create(NULL, &pool, NULL));
        {
            struct xnn_allocator allocator = ARENITE_XNNPACK_ALLOCATOR(pool);
            CHECK(xnn_initialize(&allocator));
        }
    } else {
        CHECK(xnn_initialize(NULL));
    }
    for (i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        network(sides[i], out);
    }
    fclose(out);
    CHECK(xnn_deinitialize());
    if (pool != NULL) {
        const arenite_pool_stats_t s = stats();
        printf("peak %llu bytes asked for, %llu handed out, %llu taken from the system; %llu blocks left, %llu refused\n",
               (unsigned long long)s.peak_requested_bytes, (unsigned long long)s.peak_live_bytes,
               (unsigned long long)s.reserved_bytes, (unsigned long long)s.blocks, (unsigned long long)s.refused);
        CHECK(arenite_pool_check(pool, NULL));
        CHECK(s.bad_pointers);
    }
    return 0;
}
