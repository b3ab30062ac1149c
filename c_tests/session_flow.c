/* The session with control flow, model sets, mapped memory, persistent state, policies and reports. */
#include <arenite.h>

#include "helpers.h"

static arenite_session_t *open_session(const arenite_graph_t *graph, uint32_t flags, uint32_t source) {
    arenite_session_options_t o;
    arenite_session_t *s = NULL;
    INIT(o);
    o.flags = flags;
    o.main.kind = o.persistent.kind = source;
    CHECK_OK(arenite_session_create(graph, &o, &s, NULL));
    return s;
}

static unsigned char *tensor_at(const arenite_session_t *s, uint32_t subgraph, uint32_t tensor) {
    void *data = NULL;
    CHECK_OK(arenite_session_resolve(s, subgraph, tensor, &data, NULL));
    return (unsigned char *)data;
}

static arenite_session_stats_t numbers(const arenite_session_t *s) {
    arenite_session_stats_t n;
    INIT(n);
    CHECK_OK(arenite_session_stats(s, &n));
    return n;
}

/* Tensors 0 -> 1 -> 2 of a body; 1 is its intermediate. */
static arenite_graph_t *body(uint64_t inside) {
    arenite_graph_t *graph = new_graph();
    add_tensor(graph, 256);
    add_tensor(graph, inside);
    add_tensor(graph, 256);
    add_node(graph, 0, -1, 1, -1);
    add_node(graph, 1, -1, 2, -1);
    set_ends(graph, 0, 2);
    return graph;
}

static void add_call(arenite_graph_t *graph, uint32_t call, const uint32_t *subgraphs, uint64_t count, int32_t in,
                     int32_t out) {
    node_t n;
    uint32_t index = 0;
    fill_node(&n, in, -1, out, -1);
    n.desc.call = call;
    n.desc.subgraphs = subgraphs;
    n.desc.subgraph_count = count;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
}

static void branches_exclude_each_other(void) {
    arenite_graph_t *graph = new_graph(), *a = body(8192), *b = body(4096);
    arenite_session_t *s;
    uint32_t callees[2];
    unsigned char *x, *y;
    add_tensor(graph, 256);
    add_tensor(graph, 256);
    CHECK_OK(arenite_graph_attach(graph, a, &callees[0]));
    CHECK_OK(arenite_graph_attach(graph, b, &callees[1]));
    add_call(graph, ARENITE_CALL_BRANCH, callees, 2, 0, 1);
    set_ends(graph, 0, 1);
    s = open_session(graph, ARENITE_SESSION_SMALLEST, ARENITE_SOURCE_SYSTEM);
    CHECK_OK(arenite_session_commit(s));
    /* Inputs are kept: that of a branch lives as long as the branch. */
    CHECK_EQ(numbers(s).planned_bytes, 256 + 256 + 8192 + 256 + 256);
    x = tensor_at(s, callees[0], 1);
    y = tensor_at(s, callees[1], 1);
    CHECK(x < y + 4096 && y < x + 8192);
    /* A size inside a branch changes the one arena. */
    CHECK_OK(arenite_session_resize(s, callees[1], 1, 16384));
    CHECK_OK(arenite_session_commit(s));
    CHECK_EQ(numbers(s).planned_bytes, 256 + 256 + 16384 + 256 + 256);
    arenite_session_destroy(s);
    arenite_graph_destroy(a);
    arenite_graph_destroy(b);
    arenite_graph_destroy(graph);
}

/* BR-06: what a loop carries has bytes for the whole loop, read or not; a body called three times has one place. */
static void loops_and_calls_share_one_arena(void) {
    arenite_graph_t *graph = new_graph(), *callee = body(8192), *cond = new_graph(), *loop = new_graph();
    arenite_session_t *s;
    uint32_t ids[3];
    unsigned i;
    for (i = 0; i < 5; i++) {
        add_tensor(graph, 256);
    }
    add_tensor(cond, 48);
    add_tensor(cond, 4);
    add_node(cond, -1, -1, 1, -1);
    set_ends(cond, 0, 1);
    add_tensor(loop, 48);
    add_tensor(loop, 4096);
    add_tensor(loop, 48);
    add_node(loop, -1, -1, 1, -1);
    add_node(loop, 1, -1, 2, -1);
    set_ends(loop, 0, 2);
    CHECK_OK(arenite_graph_attach(graph, callee, &ids[0]));
    CHECK_OK(arenite_graph_attach(graph, cond, &ids[1]));
    CHECK_OK(arenite_graph_attach(graph, loop, &ids[2]));
    for (i = 0; i < 3; i++) {
        add_call(graph, ARENITE_CALL_SEQUENCE, ids, 1, (int32_t)i, (int32_t)i + 1);
    }
    add_call(graph, ARENITE_CALL_LOOP, ids + 1, 2, 3, 4);
    set_ends(graph, 0, 4);
    s = open_session(graph, ARENITE_SESSION_SMALLEST, ARENITE_SOURCE_SYSTEM);
    CHECK_OK(arenite_session_commit(s));
    CHECK(numbers(s).planned_bytes < 8192 + 2048);
    CHECK(tensor_at(s, ids[2], 0) != NULL && tensor_at(s, ids[1], 0) != NULL);
    CHECK(disjoint((uintptr_t)tensor_at(s, ids[2], 0), 48, (uintptr_t)tensor_at(s, ids[2], 1), 4096));
    CHECK(disjoint((uintptr_t)tensor_at(s, ids[2], 0), 48, (uintptr_t)tensor_at(s, ids[2], 2), 48));
    arenite_session_destroy(s);
    arenite_graph_destroy(callee);
    arenite_graph_destroy(cond);
    arenite_graph_destroy(loop);
    arenite_graph_destroy(graph);
}

/* Models in a row: the maximum of what is transient, the sum of what persists, a tensor handed on. */
static void models_in_a_row_share_one_arena(void) {
    arenite_graph_t *graph = new_graph(), *model = body(8192);
    arenite_session_t *s;
    uint32_t ids[2], i, state = add_typed(model, 128, kAreniteArenaRwPersistent);
    const int32_t variable = (int32_t)state;
    CHECK_OK(arenite_graph_set_variables(model, &variable, 1));
    for (i = 0; i < 2; i++) {
        CHECK_OK(arenite_graph_attach(graph, model, &ids[i]));
        add_call(graph, ARENITE_CALL_SEQUENCE, &ids[i], 1, -1, -1);
    }
    s = open_session(graph, ARENITE_SESSION_SMALLEST, ARENITE_SOURCE_SYSTEM);
    CHECK_OK(arenite_session_link(s, ids[0], 2, ids[1], 0));
    CHECK_OK(arenite_session_commit(s));
    CHECK(tensor_at(s, ids[0], 2) == tensor_at(s, ids[1], 0));
    CHECK(numbers(s).planned_bytes <= 256 + 8192 + 256);
    CHECK(numbers(s).persistent_bytes >= 256);
    CHECK(tensor_at(s, ids[0], state) != tensor_at(s, ids[1], state));
    arenite_session_destroy(s);
    arenite_graph_destroy(model);
    arenite_graph_destroy(graph);
}

/* BR-44 and BR-46: with memory of every kind of source. */
static void persistent_contents_survive(void) {
    static const uint32_t sources[] = {ARENITE_SOURCE_SYSTEM, ARENITE_SOURCE_MAP};
    unsigned k, i;
    for (k = 0; k < COUNT(sources); k++) {
        arenite_graph_t *graph = body(8192);
        const int32_t state = (int32_t)add_typed(graph, 256, kAreniteArenaRwPersistent);
        arenite_session_t *s;
        uint64_t before = 0, after = 0;
        CHECK_OK(arenite_graph_set_variables(graph, &state, 1));
        s = open_session(graph, 0, sources[k]);
        CHECK_OK(arenite_session_commit(s));
        CHECK_EQ(tensor_at(s, 0, (uint32_t)state)[255], 0);
        memset(tensor_at(s, 0, (uint32_t)state), 0xAB, 256);
        CHECK_OK(arenite_session_resize(s, 0, 1, 40 << 20));
        CHECK_OK(arenite_session_commit(s));
        CHECK(numbers(s).committed_bytes >= 40 << 20);
        CHECK_EQ(numbers(s).high_water, numbers(s).committed_bytes);
        CHECK_OK(arenite_session_generation(s, &before));
        CHECK_OK(arenite_session_release(s));
        CHECK_OK(arenite_session_generation(s, &after));
        CHECK(before != after);
        CHECK_EQ(numbers(s).committed_bytes, 0);
        CHECK_OK(arenite_session_resize(s, 0, (uint32_t)state, 1 << 20));
        CHECK_OK(arenite_session_commit(s));
        for (i = 0; i < 256; i++) {
            CHECK_EQ(tensor_at(s, 0, (uint32_t)state)[i], 0xAB);
        }
        CHECK_EQ(tensor_at(s, 0, (uint32_t)state)[(1 << 20) - 1], 0);
        arenite_session_destroy(s);
        arenite_graph_destroy(graph);
    }
}

static void the_policy_changes_while_the_session_is_used(void) {
    arenite_graph_t *graph = body(1 << 20);
    arenite_session_t *s = open_session(graph, 0, ARENITE_SOURCE_SYSTEM);
    arenite_memory_policy_t p;
    uint64_t held;
    int i;
    CHECK_OK(arenite_session_commit(s));
    for (i = 0; i < 4; i++) {
        CHECK_OK(arenite_session_resize(s, 0, 1, 100 + (uint64_t)i));
        CHECK_OK(arenite_session_commit(s));
    }
    CHECK(numbers(s).committed_bytes >= 1 << 20);
    INIT(p);
    p.shrink_commits = 2;
    p.shrink_percent = 50;
    CHECK_OK(arenite_session_set_memory_policy(s, &p));
    for (i = 0; i < 2; i++) {
        CHECK_OK(arenite_session_resize(s, 0, 1, 200 + (uint64_t)i));
        CHECK_OK(arenite_session_commit(s));
        CHECK_EQ(numbers(s).committed_bytes >= 1 << 20, i == 0);
    }
    INIT(p);
    p.growth_cap = 1 << 16;
    CHECK_OK(arenite_session_set_memory_policy(s, &p));
    CHECK_OK(arenite_session_resize(s, 0, 1, 4096));
    CHECK_OK(arenite_session_commit(s));
    held = numbers(s).committed_bytes;
    CHECK_OK(arenite_session_resize(s, 0, 1, held));
    CHECK_OK(arenite_session_commit(s));
    CHECK_EQ(numbers(s).committed_bytes, 2 * held);
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 20));
    CHECK_OK(arenite_session_commit(s));
    INIT(p);
    p.limit = 4096;
    CHECK_OK(arenite_session_set_memory_policy(s, &p));
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 11));
    CHECK_OK(arenite_session_commit(s));
    CHECK(numbers(s).committed_bytes <= 4096);
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 12));
    CHECK_STATUS(arenite_session_commit(s), ARENITE_ERR_CAPACITY);
    p.flags = 2;
    CHECK_STATUS(arenite_session_set_memory_policy(s, &p), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_session_set_memory_policy(s, NULL));
    CHECK_OK(arenite_session_commit(s));
    arenite_session_destroy(s);
    arenite_graph_destroy(graph);
}

/* A node's alignment applies to what it touches, and the caller sees which node costs what. */
static void alignments_and_mapped_constants_are_reported(void) {
    static unsigned char file[1024];
    unsigned char *weights = file + (256 - (uintptr_t)file % 256) % 256 + 64;
    arenite_graph_t *graph = new_graph();
    arenite_session_t *s;
    arenite_node_row_t costs[2];
    arenite_tensor_row_t misaligned[2];
    uint64_t count = 0;
    uint32_t constant, index = 0;
    node_t n;
    add_tensor(graph, 200);
    add_tensor(graph, 200);
    add_tensor(graph, 200);
    constant = add_typed(graph, 100, kAreniteMmapRo);
    add_node(graph, 0, (int32_t)constant, 1, -1);
    fill_node(&n, 1, (int32_t)constant, 2, -1);
    n.desc.alignment = 65536;
    CHECK_OK(arenite_graph_add_node(graph, &n.desc, &index));
    set_ends(graph, 0, 2);
    s = open_session(graph, ARENITE_SESSION_SMALLEST, ARENITE_SOURCE_SYSTEM);
    CHECK_OK(arenite_session_bind_constant(s, 0, constant, weights, 100));
    CHECK_STATUS(arenite_session_bind_constant(s, 0, constant, weights, 99), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_session_bind_constant(s, 0, 1, weights, 200), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_session_commit(s));
    CHECK(tensor_at(s, 0, constant) == weights);
    CHECK_EQ((uintptr_t)tensor_at(s, 0, 1) % 65536, 0);
    CHECK_EQ((uintptr_t)tensor_at(s, 0, 2) % 65536, 0);
    CHECK_OK(arenite_session_alignment_costs(s, costs, 2, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(costs[0].node, 1);
    CHECK_EQ(costs[0].key, 65536);
    CHECK_EQ(costs[0].without, 256 + 256 + 200);
    CHECK(costs[0].bytes >= 65536 + 200);
    CHECK_OK(arenite_session_misaligned_constants(s, misaligned, 2, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(misaligned[0].tensor, constant);
    CHECK_EQ(misaligned[0].wanted, 65536);
    CHECK_EQ(misaligned[0].found, (uintptr_t)weights % 65536);
    CHECK_EQ(misaligned[0].cost, 65536);
    arenite_session_destroy(s);
    arenite_graph_destroy(graph);
}

/* Preparing one subgraph leaves the scratch handles of another valid, and asking twice gives the same ones. */
static void br_16_handles_of_two_subgraphs(void) {
    arenite_graph_t *graph = new_graph(), *inner = body(4096);
    arenite_session_t *s;
    uint32_t handles[2] = {7, 7}, callee = 0, g;
    add_tensor(graph, 256);
    add_tensor(graph, 256);
    CHECK_OK(arenite_graph_attach(graph, inner, &callee));
    add_call(graph, ARENITE_CALL_BRANCH, &callee, 1, 0, 1);
    set_ends(graph, 0, 1);
    s = open_session(graph, ARENITE_SESSION_SMALLEST, ARENITE_SOURCE_SYSTEM);
    for (g = 0; g < 2; g++) {
        CHECK_OK(arenite_session_request_scratch(s, g, 0, 0, 16, 16, &handles[g]));
    }
    CHECK_OK(arenite_session_commit(s));
    CHECK(handles[0] != handles[1]);
    for (g = 0; g < 2; g++) {
        uint32_t again = 7;
        void *data = NULL;
        size_t bytes = 0;
        CHECK_OK(arenite_session_request_scratch(s, g, 0, 0, 16, 16, &again));
        CHECK_EQ(handles[g], again);
        /* Nothing new was asked for, so nothing is stale. */
        CHECK_OK(arenite_session_resolve_scratch(s, handles[g], &data, &bytes));
        CHECK_EQ(bytes, 16);
        CHECK_EQ((uintptr_t)data % 16, 0);
    }
    arenite_session_destroy(s);
    arenite_graph_destroy(graph);
    arenite_graph_destroy(inner);
}

int main(void) {
    RUN(branches_exclude_each_other);
    RUN(br_16_handles_of_two_subgraphs);
    RUN(loops_and_calls_share_one_arena);
    RUN(models_in_a_row_share_one_arena);
    RUN(persistent_contents_survive);
    RUN(the_policy_changes_while_the_session_is_used);
    RUN(alignments_and_mapped_constants_are_reported);
    return DONE();
}
