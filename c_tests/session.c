/* The session: lazy resize, stale addresses, growth and shrink, cache, bindings, scratch, guard mode, figures. */
#include <arenite.h>

#include "check.h"

static arenite_graph_t *chain(const uint64_t *sizes, int count) {
    arenite_graph_t *graph = NULL;
    int32_t first = 0, last = count - 1;
    int i;
    CHECK_OK(arenite_graph_create(&graph));
    for (i = 0; i < count; i++) {
        arenite_tensor_desc_t t;
        uint32_t index = 0;
        memset(&t, 0, sizeof t);
        t.struct_size = sizeof t;
        t.bytes = sizes[i];
        t.allocation_type = kAreniteArenaRw;
        CHECK_OK(arenite_graph_add_tensor(graph, &t, &index));
        CHECK_EQ(index, i);
    }
    for (i = 1; i < count; i++) {
        arenite_node_desc_t n;
        int32_t in = i - 1, out = i;
        uint32_t index = 0;
        memset(&n, 0, sizeof n);
        n.struct_size = sizeof n;
        n.inputs = &in;
        n.input_count = 1;
        n.outputs = &out;
        n.output_count = 1;
        CHECK_OK(arenite_graph_add_node(graph, &n, &index));
    }
    CHECK_OK(arenite_graph_set_inputs(graph, &first, 1));
    CHECK_OK(arenite_graph_set_outputs(graph, &last, 1));
    return graph;
}

static arenite_session_t *session(const uint64_t *sizes, int count, const arenite_session_options_t *options) {
    arenite_graph_t *graph = chain(sizes, count);
    arenite_session_t *s = NULL;
    CHECK_OK(arenite_session_create(graph, options, &s, NULL));
    arenite_graph_destroy(graph);
    return s;
}

static arenite_session_options_t options(void) {
    arenite_session_options_t o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    return o;
}

static arenite_session_stats_t stats(const arenite_session_t *s) {
    arenite_session_stats_t n;
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    CHECK_OK(arenite_session_stats(s, &n));
    return n;
}

static arenite_failure_t failure(const arenite_session_t *s) {
    arenite_failure_t f;
    memset(&f, 0, sizeof f);
    f.struct_size = sizeof f;
    CHECK_OK(arenite_session_last_failure(s, &f));
    return f;
}

static unsigned char *at(const arenite_session_t *s, uint32_t tensor) {
    void *data = NULL;
    CHECK_OK(arenite_session_resolve(s, 0, tensor, &data, NULL));
    return (unsigned char *)data;
}

static const uint64_t SIZES[] = {128, 256, 512, 128};

static void resizing_is_lazy(void) {
    arenite_session_t *s = session(SIZES, 4, NULL);
    void *data = NULL, *before;
    size_t bytes = 0;
    uint64_t g1 = 0, g2 = 0;
    CHECK_STATUS(arenite_session_resolve(s, 0, 1, &data, &bytes), ARENITE_ERR_STALE);
    CHECK_OK(arenite_session_commit(s));
    CHECK_OK(arenite_session_generation(s, &g1));
    before = at(s, 1);
    CHECK_EQ((uintptr_t)before % 128, 0);
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 20));
    CHECK_STATUS(arenite_session_resolve(s, 0, 1, &data, &bytes), ARENITE_ERR_STALE);
    CHECK(strstr(failure(s).message, "commit first") != NULL);
    CHECK_OK(arenite_session_generation(s, &g2));
    CHECK_EQ(g1, g2);
    CHECK_OK(arenite_session_ensure_allocated(s, 0, 1, &data, &bytes));
    CHECK_EQ(bytes, 1 << 20);
    memset(data, 1, bytes);
    CHECK_OK(arenite_session_generation(s, &g2));
    CHECK(g1 != g2);
    CHECK_STATUS(arenite_session_resize(s, 0, 9, 1), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(failure(s).subject_index, 9);
    CHECK_STATUS(arenite_session_resize(NULL, 0, 0, 1), ARENITE_ERR_NULL);
    CHECK_EQ(arenite_session_destroy(s), ARENITE_OK);
    CHECK_EQ(arenite_session_destroy(NULL), ARENITE_OK);
}

static void memory_grows_exactly_and_shrinks(void) {
    arenite_session_options_t o = options();
    arenite_session_t *s;
    arenite_session_stats_t n;
    int i;
    o.shrink_commits = 3;
    o.shrink_percent = 50;
    o.limit = 1 << 22;
    s = session(SIZES, 4, &o);
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 20));
    CHECK_OK(arenite_session_commit(s));
    n = stats(s);
    CHECK_EQ(n.committed_bytes, (n.planned_bytes + 127) / 128 * 128);
    CHECK_EQ(n.high_water, n.committed_bytes);
    for (i = 0; i < 3; i++) {
        CHECK_OK(arenite_session_resize(s, 0, 1, 100 + i));
        CHECK_OK(arenite_session_commit(s));
        CHECK_EQ(stats(s).committed_bytes < 1 << 20, i == 2);
    }
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 23));
    CHECK_STATUS(arenite_session_commit(s), ARENITE_ERR_CAPACITY);
    CHECK_EQ(failure(s).available, 1 << 22);
    CHECK_OK(arenite_session_revert(s));
    memset(at(s, 1), 1, 100);
    CHECK_OK(arenite_session_release(s));
    CHECK_EQ(stats(s).committed_bytes, 0);
    CHECK_OK(arenite_session_shrink_to_fit(s));
    CHECK_EQ(stats(s).heap_calls_since_commit, 0);
    arenite_session_destroy(s);
    o.shrink_percent = 101;
    s = NULL;
    {
        arenite_graph_t *graph = chain(SIZES, 4);
        CHECK_STATUS(arenite_session_create(graph, &o, &s, NULL), ARENITE_ERR_ARGUMENT);
        CHECK(s == NULL);
        arenite_graph_destroy(graph);
    }
}

static void known_shapes_are_looked_up(void) {
    arenite_session_t *s = session(SIZES, 4, NULL);
    arenite_shape_t shapes[4] = {{0, 0, 1, 0, 4096}, {0, 0, 2, 0, 100}, {1, 0, 1, 0, 65536}, {2, 0, 1, 0, 1024}};
    uint64_t bytes = 0, plans;
    int i;
    CHECK_OK(arenite_session_reserve(s, shapes, 4, &bytes));
    CHECK(bytes >= 65536);
    CHECK_OK(arenite_session_commit(s));
    plans = stats(s).plans;
    for (i = 0; i < 6; i++) {
        CHECK_OK(arenite_session_resize(s, 0, 1, i % 2 ? 65536 : 1024));
        CHECK_OK(arenite_session_commit(s));
    }
    CHECK_EQ(stats(s).plans, plans);
    CHECK_EQ(stats(s).cache_hits, 6);
    shapes[2].set = 3;
    CHECK_STATUS(arenite_session_reserve(s, shapes, 4, &bytes), ARENITE_ERR_ARGUMENT);
    arenite_session_destroy(s);
}

static void upper_bounds_report_their_use(void) {
    arenite_session_t *s = session(SIZES, 4, NULL);
    arenite_tensor_row_t row;
    uint64_t count = 0;
    CHECK_OK(arenite_session_set_upper_bound(s, 0, 1, 4000));
    CHECK_OK(arenite_session_commit(s));
    CHECK_OK(arenite_session_report_use(s, 0, 1, 3000));
    CHECK_STATUS(arenite_session_report_use(s, 0, 1, 4001), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_session_report_use(s, 0, 2, 1), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_session_upper_bounds(s, &row, 1, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(row.wanted, 4000);
    CHECK_EQ(row.found, 3000);
    arenite_session_destroy(s);
}

/* BR-31. */
static void bound_buffers_are_checked(void) {
    static unsigned char memory[8192];
    unsigned char *base = memory + (128 - (uintptr_t)memory % 128) % 128;
    arenite_session_t *s = session(SIZES, 4, NULL);
    arenite_failure_t f;
    CHECK_OK(arenite_session_commit(s));
    CHECK_STATUS(arenite_session_bind(s, 0, 2, base + 64, 512, 0), ARENITE_ERR_ALIGNMENT);
    f = failure(s);
    CHECK_EQ(f.subject_index, 2);
    CHECK_EQ(f.available, 64);
    CHECK_STATUS(arenite_session_bind(s, 0, 2, base, 511, 0), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_session_bind(s, 0, 2, NULL, 512, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_session_bind(s, 0, 2, base, 512, 3), ARENITE_ERR_ALIGNMENT);
    CHECK_OK(arenite_session_bind(s, 0, 2, base + 64, 512, 64));
    CHECK_OK(arenite_session_commit(s));
    CHECK(at(s, 2) == base + 64);
    CHECK_OK(arenite_session_bind(s, 0, 2, base, 512, 0));
    CHECK(at(s, 2) == base);
    CHECK_OK(arenite_session_unbind(s, 0, 2));
    CHECK_STATUS(arenite_session_unbind(s, 0, 2), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_session_commit(s));
    CHECK(at(s, 2) != base);
    arenite_session_destroy(s);
}

static void inputs_and_outputs_stay(void) {
    arenite_session_options_t o = options();
    arenite_session_t *s;
    unsigned char *in, *out;
    o.flags = ARENITE_SESSION_SEPARATE_IO;
    o.io_alignment = 4096;
    s = session(SIZES, 4, &o);
    CHECK_OK(arenite_session_commit(s));
    in = at(s, 0);
    out = at(s, 3);
    CHECK_EQ((uintptr_t)in % 4096, 0);
    CHECK_OK(arenite_session_resize(s, 0, 1, 1 << 20));
    CHECK_OK(arenite_session_commit(s));
    CHECK(at(s, 0) == in && at(s, 3) == out);
    arenite_session_destroy(s);
}

static uint64_t twice_the_input(void *user, const uint64_t *bytes, uint64_t count) {
    CHECK_EQ(count, 4);
    ++*(int *)user;
    return bytes[0] == ARENITE_NO_AMOUNT ? ARENITE_NO_AMOUNT : 2 * bytes[0];
}

static void scratch_is_planned_by_node(void) {
    arenite_session_t *s = session(SIZES, 4, NULL);
    uint32_t a = 9, b = 9, again = 9;
    int asked = 0;
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(arenite_session_request_scratch(s, 0, 0, 0, 16, 64, &a));
    CHECK_OK(arenite_session_request_scratch(s, 0, 0, 0, 48, 64, &again));
    CHECK_EQ(a, again);
    CHECK_OK(arenite_session_request_scratch_by_shape(s, 0, 1, 0, 0, twice_the_input, &asked, &b));
    CHECK(a != b);
    CHECK_OK(arenite_session_resize(s, 0, 0, 1000));
    CHECK_OK(arenite_session_commit(s));
    CHECK(asked > 0);
    CHECK_OK(arenite_session_resolve_scratch(s, b, &data, &bytes));
    CHECK_EQ(bytes, 2000);
    CHECK_OK(arenite_session_resize_scratch(s, a, 5000));
    CHECK_STATUS(arenite_session_resolve_scratch(s, a, &data, &bytes), ARENITE_ERR_STALE);
    CHECK_OK(arenite_session_commit(s));
    CHECK_OK(arenite_session_resolve_scratch(s, a, &data, &bytes));
    CHECK_EQ(bytes, 5000);
    memset(data, 1, bytes);
    CHECK_STATUS(arenite_session_request_scratch(s, 0, 3, 0, 1, 0, &a), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_session_request_scratch_by_shape(s, 0, 0, 1, 0, NULL, NULL, &a), ARENITE_ERR_NULL);
    arenite_session_destroy(s);
}

static void an_overrun_names_the_node(void) {
    arenite_session_options_t o = options();
    arenite_session_t *s;
    arenite_failure_t f;
    uint32_t n;
    o.flags = ARENITE_SESSION_GUARD;
    s = session(SIZES, 4, &o);
    CHECK_OK(arenite_session_commit(s));
    for (n = 0; n < 3; n++) {
        CHECK_OK(arenite_session_guard_before(s, 0, n));
        memset(at(s, n + 1), 7, (size_t)SIZES[n + 1] + (n == 1 ? 3 : 0));
        if (n == 1) {
            CHECK_STATUS(arenite_session_guard_after(s, 0, n), ARENITE_ERR_ARGUMENT);
            f = failure(s);
            CHECK_EQ(f.subject_kind, ARENITE_SUBJECT_NODE);
            CHECK_EQ(f.subject_index, 1);
            CHECK_EQ(f.other_index, 2);
            CHECK_EQ(f.needed, 3);
        } else {
            CHECK_OK(arenite_session_guard_after(s, 0, n));
        }
    }
    arenite_session_destroy(s);
}

static void figures(void) {
    arenite_session_t *s = session(SIZES, 4, NULL);
    arenite_node_row_t rows[3];
    uint64_t count = 0, resident = 0;
    arenite_status_t status;
    CHECK_OK(arenite_session_commit(s));
    CHECK_OK(arenite_session_node_bytes(s, rows, 3, &count));
    CHECK_EQ(count, 3);
    CHECK_EQ(rows[1].bytes, 128 + 256 + 512);
    CHECK_OK(arenite_session_alignment_costs(s, NULL, 0, &count));
    CHECK_EQ(count, 0);
    CHECK_OK(arenite_session_misaligned_constants(s, NULL, 0, &count));
    CHECK_EQ(count, 0);
    CHECK_EQ(stats(s).sum_bytes, 1024);
    status = arenite_process_resident_bytes(&resident);
    CHECK(status == ARENITE_ERR_UNSUPPORTED || resident > 100000);
    CHECK_STATUS(arenite_session_link(s, 0, 1, 0, 77), ARENITE_ERR_ARGUMENT);
    arenite_session_destroy(s);
}

/* Subgraphs that run in parallel: a session each. */
static void a_subgraph_has_a_session_of_its_own(void) {
    static const uint64_t small[] = {64, 64};
    arenite_graph_t *graph = chain(SIZES, 4), *other = chain(small, 2);
    arenite_session_options_t o = options();
    arenite_session_t *s = NULL;
    void *data = NULL;
    CHECK_OK(arenite_graph_attach(graph, other, &o.entry));
    CHECK_EQ(o.entry, 1);
    CHECK_OK(arenite_session_create(graph, &o, &s, NULL));
    CHECK_OK(arenite_session_ensure_allocated(s, 1, 1, &data, NULL));
    CHECK(data != NULL && at(s, 1) == NULL);
    CHECK_EQ(stats(s).planned_bytes, 128 + 64);
    arenite_session_destroy(s);
    s = NULL;
    o.entry = 2;
    CHECK_STATUS(arenite_session_create(graph, &o, &s, NULL), ARENITE_ERR_ARGUMENT);
    arenite_graph_destroy(graph);
    arenite_graph_destroy(other);
}

int main(void) {
    RUN(resizing_is_lazy);
    RUN(memory_grows_exactly_and_shrinks);
    RUN(known_shapes_are_looked_up);
    RUN(upper_bounds_report_their_use);
    RUN(bound_buffers_are_checked);
    RUN(inputs_and_outputs_stay);
    RUN(scratch_is_planned_by_node);
    RUN(an_overrun_names_the_node);
    RUN(figures);
    RUN(a_subgraph_has_a_session_of_its_own);
    return DONE();
}
