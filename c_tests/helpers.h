/* Short forms for the C tests: zeroed structs, failure records, graphs and planners in one line. C11 and C++17. */
#ifndef ARENITE_HELPERS_H
#define ARENITE_HELPERS_H

#include <arenite.h>

#include "check.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Sanitizers end the program when malloc cannot serve a request; these tests want the null that it really returns. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HELPERS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HELPERS_SANITIZED 1
#endif
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define HELPERS_THREAD_SANITIZER 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define HELPERS_THREAD_SANITIZER 1
#endif
#ifdef HELPERS_SANITIZED
#ifdef __cplusplus
extern "C" {
#endif
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
#ifdef __cplusplus
}
#endif
#endif

/* Zeroes a versioned struct and sets its size. */
#define INIT(value) (memset(&(value), 0, sizeof(value)), (void)((value).struct_size = (uint32_t)sizeof(value)))

/* A pointer that is never right as an output of a failed call: it must still be there afterwards. */
#define UNTOUCHED(type) ((type *)(uintptr_t)0x5A5A5A50u)

static inline arenite_failure_t no_failure(void) {
    arenite_failure_t f;
    INIT(f);
    return f;
}

static inline arenite_failure_t graph_failure(const arenite_graph_t *graph) {
    arenite_failure_t f = no_failure();
    CHECK_OK(arenite_graph_last_failure(graph, &f));
    return f;
}

static inline arenite_failure_t planner_failure(const arenite_planner_t *planner) {
    arenite_failure_t f = no_failure();
    CHECK_OK(arenite_planner_last_failure(planner, &f));
    return f;
}

static inline arenite_failure_t plan_failure(const arenite_plan_t *plan) {
    arenite_failure_t f = no_failure();
    CHECK_OK(arenite_plan_last_failure(plan, &f));
    return f;
}

static inline arenite_failure_t arena_failure(const arenite_arena_t *arena) {
    arenite_failure_t f = no_failure();
    CHECK_OK(arenite_arena_last_failure(arena, &f));
    return f;
}

static inline uint64_t round_up(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/* ---- graphs ------------------------------------------------------------------------------------ */

static inline arenite_graph_t *new_graph(void) {
    arenite_graph_t *graph = NULL;
    CHECK_OK(arenite_graph_create(&graph));
    return graph;
}

static inline uint32_t add_typed(arenite_graph_t *graph, uint64_t bytes, uint32_t allocation_type) {
    arenite_tensor_desc_t d;
    uint32_t index = 0xFFFFFFFFu;
    INIT(d);
    d.bytes = bytes;
    d.allocation_type = allocation_type;
    CHECK_OK(arenite_graph_add_tensor(graph, &d, &index));
    return index;
}

static inline uint32_t add_tensor(arenite_graph_t *graph, uint64_t bytes) {
    return add_typed(graph, bytes, kAreniteArenaRw);
}

/* A description of a node with up to two inputs and outputs; -1 for none. */
typedef struct {
    arenite_node_desc_t desc;
    int32_t inputs[2], outputs[2];
} node_t;

static inline node_t *fill_node(node_t *n, int32_t in0, int32_t in1, int32_t out0, int32_t out1) {
    INIT(n->desc);
    n->inputs[0] = in0;
    n->inputs[1] = in1;
    n->outputs[0] = out0;
    n->outputs[1] = out1;
    n->desc.inputs = n->inputs;
    n->desc.input_count = 2;
    n->desc.outputs = n->outputs;
    n->desc.output_count = 2;
    return n;
}

static inline uint32_t add_node(arenite_graph_t *graph, int32_t in0, int32_t in1, int32_t out0, int32_t out1) {
    node_t n;
    uint32_t index = 0xFFFFFFFFu;
    CHECK_OK(arenite_graph_add_node(graph, &fill_node(&n, in0, in1, out0, out1)->desc, &index));
    return index;
}

static inline void set_ends(arenite_graph_t *graph, int32_t input, int32_t output) {
    CHECK_OK(arenite_graph_set_inputs(graph, &input, 1));
    CHECK_OK(arenite_graph_set_outputs(graph, &output, 1));
}

static inline arenite_graph_options_t graph_options(uint32_t flags, uint32_t policy) {
    arenite_graph_options_t o;
    INIT(o);
    o.flags = flags;
    o.policy = policy;
    return o;
}

static inline arenite_lifetime_t lifetime(const arenite_graph_t *graph, const arenite_graph_options_t *options,
                                          uint32_t tensor) {
    arenite_lifetime_t l[32];
    memset(l, 0, sizeof l);
    CHECK(tensor < COUNT(l));
    CHECK_OK(arenite_graph_lifetimes(graph, options, 0, l, tensor + 1));
    return l[tensor];
}

/* ---- planners ---------------------------------------------------------------------------------- */

static inline arenite_planner_t *new_planner(uint32_t strategy) {
    arenite_planner_options_t o;
    arenite_planner_t *planner = NULL;
    arenite_failure_t f = no_failure();
    INIT(o);
    o.strategy = strategy;
    CHECK_OK(arenite_planner_create(&o, &planner, &f));
    return planner;
}

static inline arenite_buffer_desc_t buffer(uint64_t bytes, uint32_t first, uint32_t last) {
    arenite_buffer_desc_t d;
    INIT(d);
    d.bytes = bytes;
    d.first = first;
    d.last = last;
    return d;
}

static inline uint32_t add(arenite_planner_t *planner, uint64_t bytes, uint32_t first, uint32_t last) {
    const arenite_buffer_desc_t d = buffer(bytes, first, last);
    uint32_t index = 0xFFFFFFFFu;
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    return index;
}

static inline arenite_plan_t *plan_of(arenite_planner_t *planner) {
    arenite_plan_t *plan = NULL;
    CHECK_OK(arenite_planner_plan(planner, &plan));
    return plan;
}

/* Plans with a planner of its own. */
static inline arenite_plan_t *plan_graph(const arenite_graph_t *graph, const arenite_graph_options_t *options) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan = NULL;
    CHECK_OK(arenite_planner_plan_graph(planner, graph, options, &plan));
    CHECK_OK(arenite_planner_destroy(planner));
    return plan;
}

static inline arenite_plan_info_t info_of(const arenite_plan_t *plan) {
    arenite_plan_info_t i;
    INIT(i);
    CHECK_OK(arenite_plan_info(plan, &i));
    return i;
}

/* The arena, rounded up to 128, as the bug reports state it. */
static inline uint64_t rounded_arena(const arenite_plan_t *plan) { return round_up(info_of(plan).arena_bytes, 128); }

static inline uint64_t offset_of(const arenite_plan_t *plan, uint32_t buffer) {
    uint64_t offset = ARENITE_NO_AMOUNT;
    CHECK_OK(arenite_plan_offset(plan, buffer, &offset));
    return offset;
}

static inline arenite_plan_tensor_t tensor_in(const arenite_plan_t *plan, uint32_t subgraph, uint32_t tensor) {
    arenite_plan_tensor_t t;
    INIT(t);
    CHECK_OK(arenite_plan_tensor(plan, subgraph, tensor, &t));
    return t;
}

static inline int disjoint(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a + a_bytes <= b || b + b_bytes <= a;
}

/* The next number of a seeded stream. */
static inline uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
