/*
 * MobileNetV2 with two kinds of memory: one malloc per tensor, freed after its last reader, and an arenite arena.
 *
 *   mobilenet [--resolution N] [--frames N] [--in-place] [--poison] [--strategy auto|first-fit|greedy-by-size|tflm-greedy]
 *
 * --in-place   also with additions, reshape and softmax that may overwrite an input
 * --poison     also with every byte of the arena that belongs to no live tensor overwritten before each node
 *
 * Both see the same frames, in turn. The exit status is 0 only where all outputs are identical bit for bit, the arena made
 * no heap call after its commit, and (strategy auto) the arena is as small as the lower bound. Times are only printed.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#include <arenite.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heap_count.h"
#include "kernels.h"
#include "model.h"

typedef struct {
    int resolution, frames, in_place, poison;
    uint32_t strategy;
} settings_t;

/* By number; those from 5 on are answers only. */
static const char *const strategies[8] = {"auto",  "first-fit", "greedy-by-size", "tflm-greedy",
                                          "exact", "valley",    "windows",        "search"};

static int failures;

static void expect(int ok, const char *what) {
    if (!ok) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

/* Ends the program with the failure record of a call that should not fail. */
static void must(arenite_status_t status, const arenite_failure_t *failure, const char *what) {
    if (status != ARENITE_OK) {
        printf("FAILED: %s: %s: %s\n", what, arenite_status_name(status), failure == NULL ? "" : failure->message);
        exit(1);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one malloc per tensor --------------------------------------------------------------------- */

typedef struct {
    const model_t *model;
    AreniteTensor tensors[MODEL_TENSORS];
    int last_reader[MODEL_TENSORS]; /* node after which a tensor is freed; -1 for those that are not */
    double allocating;              /* seconds in malloc and free so far */
} by_malloc_t;

static void malloc_prepare(by_malloc_t *e, const model_t *m) {
    int n, i, t;
    e->model = m;
    e->allocating = 0;
    memcpy(e->tensors, m->tensors, sizeof e->tensors);
    for (t = 0; t < m->tensor_count; t++) {
        e->last_reader[t] = -1;
    }
    for (n = 0; n < m->node_count; n++) {
        for (i = 0; i < m->nodes[n].inputs->size; i++) {
            t = at(m->nodes[n].inputs, i);
            if (m->tensors[t].allocation_type == kAreniteArenaRw) {
                e->last_reader[t] = n;
            }
        }
    }
}

static void *take(size_t bytes) {
    void *data = malloc(bytes);
    if (data == NULL) {
        printf("FAILED: out of memory\n");
        exit(1);
    }
    return data;
}

static void malloc_infer(by_malloc_t *e, const float *frame, float *result, int timed) {
    const model_t *m = e->model;
    double start = 0;
    int n, i;
    e->tensors[m->input].data = take(e->tensors[m->input].bytes);
    memcpy(e->tensors[m->input].data, frame, e->tensors[m->input].bytes);
    for (n = 0; n < m->node_count; n++) {
        AreniteTensor *out = &e->tensors[at(m->nodes[n].outputs, 0)];
        start = timed ? now() : 0;
        out->data = take(out->bytes);
        e->allocating += timed ? now() - start : 0;
        run_node(m, n, e->tensors);
        start = timed ? now() : 0;
        for (i = 0; i < m->nodes[n].inputs->size; i++) {
            const int32_t t = at(m->nodes[n].inputs, i);
            if (e->last_reader[t] == n) {
                free(e->tensors[t].data);
            }
        }
        e->allocating += timed ? now() - start : 0;
    }
    memcpy(result, e->tensors[m->output].data, e->tensors[m->output].bytes);
    free(e->tensors[m->output].data);
}

/* ---- the arenite arena ------------------------------------------------------------------------- */

typedef struct {
    const model_t *model;
    AreniteTensor tensors[MODEL_TENSORS];
    arenite_plan_t *plan;
    arenite_arena_t *arena;
    arenite_plan_info_t info;
    double analysing, planning, committing; /* seconds */
} by_arena_t;

static void arena_prepare(by_arena_t *e, const model_t *m, uint32_t strategy, int in_place) {
    arenite_lite_desc_t desc;
    arenite_planner_options_t options;
    arenite_failure_t failure;
    arenite_graph_t *graph = NULL;
    arenite_planner_t *planner = NULL;
    arenite_status_t status;
    double start;
    int t;
    memset(&failure, 0, sizeof failure);
    failure.struct_size = sizeof failure;
    e->model = m;
    memcpy(e->tensors, m->tensors, sizeof e->tensors);

    memset(&desc, 0, sizeof desc);
    desc.struct_size = sizeof desc;
    desc.layout = ARENITE_LAYOUT_FULL;
    desc.tensors = e->tensors;
    desc.tensor_count = (uint64_t)m->tensor_count;
    desc.nodes = m->nodes;
    desc.node_count = (uint64_t)m->node_count;
    desc.inputs = &m->input;
    desc.input_count = 1;
    desc.outputs = &m->output;
    desc.output_count = 1;
    desc.inplace = in_place ? m->inplace : NULL;
    start = now();
    must(arenite_graph_create_lite(&desc, &graph, &failure), &failure, "graph");
    e->analysing = now() - start;

    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.strategy = strategy;
    start = now();
    must(arenite_planner_create(&options, &planner, &failure), &failure, "planner");
    status = arenite_planner_plan_graph(planner, graph, NULL, &e->plan);
    e->planning = now() - start;
    if (status != ARENITE_OK) {
        must(arenite_planner_last_failure(planner, &failure), NULL, "failure record");
    }
    must(status, &failure, "plan");
    must(arenite_planner_destroy(planner), NULL, "planner");
    must(arenite_graph_destroy(graph), NULL, "graph");
    memset(&e->info, 0, sizeof e->info);
    e->info.struct_size = sizeof e->info;
    must(arenite_plan_info(e->plan, &e->info), NULL, "info");

    start = now();
    must(arenite_arena_create(e->plan, NULL, &e->arena, &failure), &failure, "arena");
    must(arenite_arena_commit(e->arena), NULL, "commit");
    for (t = 0; t < m->tensor_count; t++) {
        if (m->tensors[t].allocation_type == kAreniteMmapRo) {
            must(arenite_arena_bind_constant(e->arena, 0, (uint32_t)t, m->tensors[t].data, m->tensors[t].bytes), NULL,
                 "constant");
            e->tensors[t].data = NULL; /* comes back with the assignment */
        }
    }
    must(arenite_arena_assign(e->arena, 0, ARENITE_LAYOUT_FULL, e->tensors, (uint64_t)m->tensor_count), NULL, "assign");
    e->committing = now() - start;
}

static void arena_finish(by_arena_t *e) {
    must(arenite_arena_destroy(e->arena), NULL, "arena");
    must(arenite_plan_destroy(e->plan), NULL, "plan");
}

static void arena_infer(by_arena_t *e, const float *frame, float *result) {
    const model_t *m = e->model;
    int n;
    memcpy(e->tensors[m->input].data, frame, e->tensors[m->input].bytes);
    for (n = 0; n < m->node_count; n++) {
        run_node(m, n, e->tensors);
    }
    memcpy(result, e->tensors[m->output].data, e->tensors[m->output].bytes);
}

/*
 * The same, and before each node every byte that the plan's lifetimes give to nobody at that step is overwritten. A
 * lifetime that ended too early shows as another result. Returns how many bytes were overwritten.
 */
static uint64_t arena_infer_poisoned(by_arena_t *e, const float *frame, float *result) {
    const model_t *m = e->model;
    const size_t bytes = (size_t)e->info.arena_bytes;
    unsigned char *used = (unsigned char *)take(bytes), *base = NULL;
    uint64_t poisoned = 0;
    size_t i;
    int n, t;
    memcpy(e->tensors[m->input].data, frame, e->tensors[m->input].bytes);
    for (n = 0; n < m->node_count; n++) {
        memset(used, 0, bytes);
        for (t = 0; t < m->tensor_count; t++) {
            arenite_plan_tensor_t p;
            memset(&p, 0, sizeof p);
            p.struct_size = sizeof p;
            must(arenite_plan_tensor(e->plan, 0, (uint32_t)t, &p), NULL, "tensor");
            if (p.lifetime.arena != ARENITE_ARENA_MAIN) {
                continue;
            }
            base = (unsigned char *)e->tensors[t].data - p.offset;
            if (p.lifetime.first <= (uint32_t)n && (uint32_t)n <= p.lifetime.last) {
                memset(used + p.offset, 1, (size_t)p.bytes);
            }
        }
        for (i = 0; i < bytes; i++) {
            if (!used[i]) {
                base[i] = 0xA5;
                poisoned++;
            }
        }
        run_node(m, n, e->tensors);
    }
    memcpy(result, e->tensors[m->output].data, e->tensors[m->output].bytes);
    free(used);
    return poisoned;
}

/* ---- the comparison ---------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *name, double *times, int n) {
    qsort(times, (size_t)n, sizeof *times, ascending);
    printf("  %-7s median %9.3f ms   p99.9 %9.3f ms   worst %9.3f ms\n", name, times[n / 2] * 1e3,
           times[(int)((n - 1) * 0.999)] * 1e3, times[n - 1] * 1e3);
}

static void new_frame(float *frame, size_t elements, uint32_t seed) {
    size_t i;
    for (i = 0; i < elements; i++) {
        frame[i] = noise(&seed);
    }
}

static uint64_t round_up(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

static void print_plan(const by_arena_t *e) {
    const arenite_plan_info_t *i = &e->info;
    printf("  tensors %llu bytes in %llu buffers; arena %llu (%.1f %%), lower bound %llu, %s by %s\n",
           (unsigned long long)i->total_bytes, (unsigned long long)i->buffer_count, (unsigned long long)i->arena_bytes,
           100.0 * (double)i->arena_bytes / (double)i->total_bytes, (unsigned long long)i->lower_bound,
           i->optimal ? "optimal" : "not proven optimal", i->strategy < 8 ? strategies[i->strategy] : "an unknown strategy");
}

typedef struct {
    float *frame, *expected, *previous, *found;
    double *malloc_times, *arena_times;
} buffers_t;

static void compare(const settings_t *s, const model_t *m, buffers_t *b, double load, int in_place) {
    static by_malloc_t by_malloc;
    static by_arena_t by_arena;
    const size_t elements = m->tensors[m->input].bytes / sizeof(float), result_bytes = m->tensors[m->output].bytes;
    unsigned long malloc_calls = 0, arena_calls = 0, before;
    double start, first_malloc, first_arena, prepare, total;
    int f, different = 0, repeated = 0;

    printf("%s\n", in_place ? "in place" : "separate outputs");
    malloc_prepare(&by_malloc, m);
    arena_prepare(&by_arena, m, s->strategy, in_place);
    print_plan(&by_arena);
    if (s->strategy == ARENITE_STRATEGY_AUTO) {
        const uint64_t a = by_arena.info.alignment;
        expect(round_up(by_arena.info.arena_bytes, a) == round_up(by_arena.info.lower_bound, a) && by_arena.info.optimal,
               "the arena is as small as the lower bound");
    }

    new_frame(b->frame, elements, 1);
    start = now();
    malloc_infer(&by_malloc, b->frame, b->expected, 1);
    first_malloc = now() - start;
    before = heap_calls();
    start = now();
    arena_infer(&by_arena, b->frame, b->found);
    first_arena = now() - start;
    expect(heap_calls() == before, "no heap call in the first inference after the commit");
    prepare = by_arena.analysing + by_arena.planning + by_arena.committing;
    total = load + first_malloc;
    printf("  start-up  malloc: load %.2f ms, first inference %.2f ms; malloc and free %.0f us = %.3f %%\n", load * 1e3,
           first_malloc * 1e3, by_malloc.allocating * 1e6, 100 * by_malloc.allocating / total);
    total = load + prepare + first_arena;
    printf("  start-up  arena:  load %.2f ms, first inference %.2f ms; tables %.0f us, plan %.0f us, commit %.0f us = %.3f %%\n",
           load * 1e3, first_arena * 1e3, by_arena.analysing * 1e6, by_arena.planning * 1e6, by_arena.committing * 1e6,
           100 * prepare / total);

    for (f = 0; f < s->frames; f++) {
        int turn;
        memcpy(b->previous, b->expected, result_bytes);
        new_frame(b->frame, elements, 2u + (uint32_t)f);
        /* Who goes first changes from frame to frame: the second finds a warmer cache. */
        for (turn = 0; turn < 2; turn++) {
            const int arena = turn != f % 2;
            before = heap_calls();
            start = now();
            if (arena) {
                arena_infer(&by_arena, b->frame, b->found);
                b->arena_times[f] = now() - start;
                arena_calls += heap_calls() - before;
            } else {
                malloc_infer(&by_malloc, b->frame, b->expected, 0);
                b->malloc_times[f] = now() - start;
                malloc_calls += heap_calls() - before;
            }
        }
        different += memcmp(b->expected, b->found, result_bytes) != 0;
        repeated += memcmp(b->expected, b->previous, result_bytes) == 0;
    }
    printf("  outputs: %d of %d frames identical; the last frame's class 0 has %.9g\n", s->frames - different, s->frames,
           (double)b->found[0]);
    expect(different == 0, "outputs are identical");
    expect(repeated == 0, "every frame has another result");
    if (heap_is_counted()) {
        printf("  heap calls per inference: malloc %.1f, arena %.1f\n", (double)malloc_calls / s->frames,
               (double)arena_calls / s->frames);
        expect(arena_calls == 0, "no heap call after the commit");
        expect(malloc_calls == (unsigned long)s->frames * 2ul * (unsigned long)(m->node_count + 1),
               "the count sees one malloc and one free per tensor");
    } else {
        printf("  heap calls cannot be counted in this build\n");
    }
    print_times("malloc", b->malloc_times, s->frames);
    print_times("arena", b->arena_times, s->frames);

    if (s->poison) {
        uint64_t poisoned = 0;
        different = 0;
        for (f = 0; f < 3; f++) {
            new_frame(b->frame, elements, 99u + (uint32_t)f);
            malloc_infer(&by_malloc, b->frame, b->expected, 0);
            poisoned += arena_infer_poisoned(&by_arena, b->frame, b->found);
            different += memcmp(b->expected, b->found, result_bytes) != 0;
        }
        printf("  poisoned: %d of 3 frames identical, %llu bytes overwritten per frame\n", 3 - different,
               (unsigned long long)(poisoned / 3));
        expect(different == 0, "outputs are identical with everything dead overwritten");
        expect(poisoned > 0, "there was something to overwrite");
    }
    arena_finish(&by_arena);
}

static int usage(void) {
    fprintf(stderr, "mobilenet [--resolution 1...1024] [--frames N] [--in-place] [--poison] [--strategy NAME]\n");
    return 2;
}

int main(int argc, char **argv) {
    static model_t model;
    settings_t s = {96, 20, 0, 0, ARENITE_STRATEGY_AUTO};
    buffers_t b;
    double start, load;
    int i;
    for (i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--in-place") == 0) {
            s.in_place = 1;
        } else if (strcmp(argv[i], "--poison") == 0) {
            s.poison = 1;
        } else if (strcmp(argv[i], "--resolution") == 0) {
            s.resolution = atoi(value);
            i++;
        } else if (strcmp(argv[i], "--frames") == 0) {
            s.frames = atoi(value);
            i++;
        } else if (strcmp(argv[i], "--strategy") == 0) {
            for (s.strategy = 0; s.strategy < 4 && strcmp(value, strategies[s.strategy]) != 0; s.strategy++) {
            }
            i++;
        } else {
            return usage();
        }
    }
    if (s.resolution < 1 || s.resolution > 1024 || s.frames < 1 || s.frames > 1000000 || s.strategy > 3) {
        return usage();
    }
    if (arenite_abi_version() != ARENITE_ABI_VERSION ||
        arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode)) != ARENITE_OK) {
        printf("FAILED: the library is not the header's\n");
        return 1;
    }
    start = now();
    if (!model_build(&model, s.resolution, 2018)) {
        printf("FAILED: out of memory\n");
        return 1;
    }
    load = now() - start;
    printf("MobileNetV2 1.0, %dx%d: %d nodes, %d tensors, %.2f MB of weights, %d frames\n", s.resolution, s.resolution,
           model.node_count, model.tensor_count, (double)model.weight_count * sizeof(float) / 1e6, s.frames);
    b.frame = (float *)take(model.tensors[model.input].bytes);
    b.expected = (float *)take(model.tensors[model.output].bytes);
    b.previous = (float *)take(model.tensors[model.output].bytes);
    b.found = (float *)take(model.tensors[model.output].bytes);
    b.malloc_times = (double *)take((size_t)s.frames * sizeof(double));
    b.arena_times = (double *)take((size_t)s.frames * sizeof(double));
    compare(&s, &model, &b, load, 0);
    if (s.in_place) {
        compare(&s, &model, &b, load, 1);
    }
    free(b.frame);
    free(b.expected);
    free(b.previous);
    free(b.found);
    free(b.malloc_times);
    free(b.arena_times);
    model_free(&model);
    printf("%d checks failed\n", failures);
    return failures == 0 ? 0 : 1;
}
