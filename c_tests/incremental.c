/* TFLite's planner life cycle: the behaviours that concern execution, over real memory. */
#include <arenite.h>

#include "check.h"

/* Tensor i has 3 (i + 1) bytes; 0,1>2 | 2,0>4 with temporary 5 | 4>3. */
static arenite_graph_t *t_graph(void) {
    static const int32_t lists[][3] = {{0, 1, -1}, {2, 0, -1}, {4, -1, -1}};
    static const int32_t outputs[] = {2, 4, 3}, inputs[] = {0, 1}, temporary = 5, last = 3;
    static const uint64_t counts[] = {2, 2, 1};
    arenite_graph_t *graph = NULL;
    uint32_t index = 0;
    int i;
    CHECK_OK(arenite_graph_create(&graph));
    for (i = 0; i < 6; i++) {
        arenite_tensor_desc_t t;
        memset(&t, 0, sizeof t);
        t.struct_size = sizeof t;
        t.bytes = 3 * (uint64_t)(i + 1);
        t.allocation_type = kAreniteArenaRw;
        CHECK_OK(arenite_graph_add_tensor(graph, &t, &index));
    }
    for (i = 0; i < 3; i++) {
        arenite_node_desc_t n;
        memset(&n, 0, sizeof n);
        n.struct_size = sizeof n;
        n.inputs = lists[i];
        n.input_count = counts[i];
        n.outputs = &outputs[i];
        n.output_count = 1;
        n.temporaries = &temporary;
        n.temporary_count = i == 1;
        CHECK_OK(arenite_graph_add_node(graph, &n, &index));
    }
    CHECK_OK(arenite_graph_set_inputs(graph, inputs, 2));
    CHECK_OK(arenite_graph_set_outputs(graph, &last, 1));
    return graph;
}

static arenite_incremental_t *create_with(uint32_t flags, const arenite_source_t *source) {
    arenite_graph_t *graph = t_graph();
    arenite_incremental_options_t o;
    arenite_incremental_t *i = NULL;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.flags = flags;
    o.alignment = 4;
    if (source != NULL) {
        o.main = o.persistent = *source;
    }
    CHECK_OK(arenite_incremental_create(graph, &o, &i, NULL));
    arenite_graph_destroy(graph);
    CHECK_OK(arenite_incremental_plan(i));
    return i;
}

static arenite_incremental_t *create(uint32_t flags) { return create_with(flags, NULL); }

static unsigned char *at(const arenite_incremental_t *i, uint32_t tensor) {
    void *data = NULL;
    CHECK_OK(arenite_incremental_resolve(i, tensor, &data, NULL));
    return (unsigned char *)data;
}

/* Behaviours 7 and 8. */
static void what_came_before_stays(void) {
    arenite_incremental_t *i = create(0);
    unsigned char *base;
    uint64_t g1 = 0, g2 = 0;
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    base = at(i, 0);
    CHECK(at(i, 1) == base + 4 && at(i, 5) == base + 12 && at(i, 3) == base + 12);
    CHECK(at(i, 4) == base + 32 && at(i, 2) == base + 48);
    memset(at(i, 0), 1, 3);
    memset(at(i, 2), 2, 9);
    CHECK_OK(arenite_incremental_generation(i, &g1));
    CHECK_OK(arenite_incremental_reset_after(i, 0));
    CHECK(at(i, 3) == NULL && at(i, 4) == NULL && at(i, 5) == NULL);
    CHECK_OK(arenite_incremental_set_tensor(i, 4, 15 + 64, kAreniteArenaRw));
    CHECK_OK(arenite_incremental_execute(i, 1, 2));
    CHECK_OK(arenite_incremental_generation(i, &g2));
    CHECK(g1 != g2);
    base = at(i, 0);
    CHECK(at(i, 3) == base + 12 && at(i, 2) == base + 48 && at(i, 4) == base + 60);
    CHECK(base[0] == 1 && base[2] == 1 && base[48] == 2 && base[56] == 2);
    arenite_incremental_destroy(i);
}

/* Behaviour 9 and BR-46. */
static void persistent_contents_survive(void) {
    arenite_incremental_t *i = create(0);
    unsigned char *state;
    CHECK_OK(arenite_incremental_set_tensor(i, 5, 18, kAreniteArenaRwPersistent));
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    state = at(i, 5);
    memset(state, 0xAB, 18);
    CHECK_OK(arenite_incremental_reset_after(i, 0));
    CHECK(at(i, 5) == state);
    CHECK_OK(arenite_incremental_reset(i));
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_EQ(at(i, 5)[17], 0xAB);
    arenite_incremental_destroy(i);
}

static void *base(const arenite_incremental_t *i, uint32_t allocation_type) {
    void *data = NULL;
    CHECK_OK(arenite_incremental_base(i, allocation_type, &data));
    return data;
}

/* Behaviours 1 and 24. */
static void release_and_acquire(void) {
    arenite_incremental_t *i = create(0);
    uint32_t has = 9;
    size_t main_bytes = 9, persistent_bytes = 9;
    unsigned char *data;
    void *nothing = NULL;
    CHECK_OK(arenite_incremental_has_memory(i, &has));
    CHECK_EQ(has, 0);
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_OK(arenite_incremental_allocation_info(i, &main_bytes, &persistent_bytes));
    CHECK(main_bytes >= 57 && persistent_bytes == 0);
    data = at(i, 0);
    CHECK(base(i, kAreniteArenaRw) == data);
    CHECK(base(i, kAreniteArenaRwPersistent) == NULL && base(i, kAreniteDynamic) == NULL);
    CHECK_STATUS(arenite_incremental_base(i, 99, &nothing), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_incremental_base(i, kAreniteArenaRw, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_incremental_base(NULL, kAreniteArenaRw, &nothing), ARENITE_ERR_NULL);
    CHECK_OK(arenite_incremental_acquire(i));
    CHECK(at(i, 0) == data);
    CHECK_OK(arenite_incremental_release(i));
    CHECK(base(i, kAreniteArenaRw) == NULL);
    CHECK_OK(arenite_incremental_has_memory(i, &has));
    CHECK_EQ(has, 0);
    CHECK(at(i, 0) == NULL);
    CHECK_OK(arenite_incremental_acquire(i));
    CHECK(at(i, 4) == at(i, 0) + 32);
    arenite_incremental_destroy(i);
}

static void growing_without_a_reset_harms_nobody(void) {
    arenite_incremental_t *i = create(0);
    void *data = NULL;
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    memset(at(i, 0), 1, 3);
    memset(at(i, 1), 2, 6);
    CHECK_OK(arenite_incremental_set_tensor(i, 2, 30, kAreniteArenaRw));
    CHECK_STATUS(arenite_incremental_resolve(i, 2, &data, NULL), ARENITE_ERR_STALE);
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    memset(at(i, 2), 3, 30);
    CHECK(at(i, 0)[2] == 1 && at(i, 1)[5] == 2);
    arenite_incremental_destroy(i);
}

static void preserve_all_and_errors(void) {
    arenite_incremental_t *i = create(ARENITE_INCREMENTAL_PRESERVE_ALL);
    char text[64];
    uint64_t length = 0;
    arenite_failure_t f;
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK(at(i, 3) != at(i, 5) && at(i, 4) != at(i, 5));
    CHECK_OK(arenite_incremental_dump(i, text, sizeof text, &length));
    CHECK_EQ(strlen(text), 63);
    CHECK(length > 100 && strncmp(text, "main arena ", 11) == 0);
    CHECK_OK(arenite_incremental_dump(i, NULL, 0, &length));
    CHECK_STATUS(arenite_incremental_set_tensor(i, 6, 1, kAreniteArenaRw), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_incremental_set_tensor(i, 0, 1, 99), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_incremental_set_tensor(i, 4, UINT64_MAX - 2, kAreniteArenaRw));
    CHECK_STATUS(arenite_incremental_execute(i, 0, 2), ARENITE_ERR_OVERFLOW);
    memset(&f, 0, sizeof f);
    f.struct_size = sizeof f;
    CHECK_OK(arenite_incremental_last_failure(i, &f));
    CHECK_EQ(f.subject_index, 4);
    arenite_incremental_destroy(i);
}

static void an_overrun_names_the_node(void) {
    arenite_incremental_t *i = create(ARENITE_INCREMENTAL_GUARD);
    arenite_failure_t f;
    CHECK_STATUS(arenite_incremental_guard_before(i, 0), ARENITE_ERR_STALE);
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_OK(arenite_incremental_guard_before(i, 0));
    memset(at(i, 2), 1, 9);
    CHECK_OK(arenite_incremental_guard_after(i, 0));
    CHECK_OK(arenite_incremental_guard_before(i, 1));
    memset(at(i, 4), 1, 15);
    memset(at(i, 5), 1, 18 + 2);
    CHECK_STATUS(arenite_incremental_guard_after(i, 1), ARENITE_ERR_ARGUMENT);
    memset(&f, 0, sizeof f);
    f.struct_size = sizeof f;
    CHECK_OK(arenite_incremental_last_failure(i, &f));
    CHECK_EQ(f.subject_kind, ARENITE_SUBJECT_NODE);
    CHECK_EQ(f.subject_index, 1);
    CHECK_EQ(f.other_index, 5);
    CHECK_EQ(f.needed, 2);
    CHECK_STATUS(arenite_incremental_guard_before(i, 3), ARENITE_ERR_ARGUMENT);
    arenite_incremental_destroy(i);
    i = create(0);
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_STATUS(arenite_incremental_guard_after(i, 0), ARENITE_ERR_UNSUPPORTED);
    arenite_incremental_destroy(i);
}

static void runs_that_need_little_give_memory_back(void) {
    arenite_incremental_t *i = create(0);
    arenite_memory_policy_t policy;
    size_t held = 0, persistent = 0;
    int run;
    memset(&policy, 0, sizeof policy);
    policy.struct_size = sizeof policy;
    policy.shrink_commits = 3;
    policy.shrink_percent = 50;
    CHECK_OK(arenite_incremental_set_memory_policy(i, &policy));
    for (run = 0; run < 5; run++) {
        CHECK_OK(arenite_incremental_reset(i));
        CHECK_OK(arenite_incremental_set_tensor(i, 4, run == 0 ? 1 << 20 : 100, kAreniteArenaRw));
        CHECK_OK(arenite_incremental_execute(i, 0, 0));
        CHECK_OK(arenite_incremental_execute(i, 1, 2));
        CHECK_OK(arenite_incremental_allocation_info(i, &held, &persistent));
        CHECK_EQ(held >= 1 << 20, run < 4);
    }
    CHECK_OK(arenite_incremental_set_tensor(i, 4, 1 << 16, kAreniteArenaRw));
    CHECK_OK(arenite_incremental_reset(i));
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_OK(arenite_incremental_set_tensor(i, 4, 100, kAreniteArenaRw));
    CHECK_OK(arenite_incremental_reset(i));
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    memset(at(i, 0), 5, 3);
    CHECK_OK(arenite_incremental_shrink_to_fit(i));
    CHECK_EQ(at(i, 0)[2], 5);
    CHECK_OK(arenite_incremental_allocation_info(i, &held, &persistent));
    CHECK(held < 1024);
    policy.shrink_percent = 101;
    CHECK_STATUS(arenite_incremental_set_memory_policy(i, &policy), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_incremental_set_memory_policy(i, NULL));
    arenite_incremental_destroy(i);
}

static void the_numbers_of_a_run(void) {
    arenite_incremental_t *i = create(0);
    arenite_incremental_stats_t n;
    arenite_node_row_t rows[2];
    uint64_t count = 0;
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_OK(arenite_incremental_stats(i, &n));
    CHECK_EQ(n.sum_bytes, 3 + 6 + 9 + 12 + 15 + 18);
    CHECK_EQ(n.planned_bytes, 57);
    CHECK(n.committed_bytes >= 57 && n.high_water == n.committed_bytes && n.persistent_bytes == 0);
    CHECK_EQ(n.heap_calls, 1);
    CHECK_EQ(n.heap_calls_since_execute, 0);
    CHECK_OK(arenite_incremental_node_bytes(i, rows, 2, &count));
    CHECK_EQ(count, 3);
    CHECK_EQ(rows[0].bytes, 3 + 6 + 9);
    CHECK_EQ(rows[1].bytes, 3 + 6 + 9 + 15 + 18);
    CHECK_OK(arenite_incremental_release(i));
    CHECK_OK(arenite_incremental_stats(i, &n));
    CHECK_EQ(n.committed_bytes, 0);
    CHECK_EQ(n.heap_calls_since_execute, 1);
    arenite_incremental_destroy(i);
}

/* What must survive growing is moved, not copied: the pages keep their contents. */
static void mapped_pages_keep_their_contents(void) {
    arenite_source_t source;
    arenite_incremental_t *i;
    memset(&source, 0, sizeof source);
    source.kind = ARENITE_SOURCE_MAP;
    i = create_with(0, &source);
    CHECK_OK(arenite_incremental_execute(i, 0, 0));
    memset(at(i, 0), 1, 3);
    memset(at(i, 2), 2, 9);
    CHECK_OK(arenite_incremental_set_tensor(i, 4, 8 << 20, kAreniteArenaRw));
    CHECK_OK(arenite_incremental_execute(i, 1, 2));
    memset(at(i, 4), 3, 8 << 20);
    CHECK(at(i, 0)[2] == 1 && at(i, 2)[8] == 2);
    arenite_incremental_destroy(i);
}

typedef struct {
    int allocated, freed;
} events_t;

static void *event_allocate(void *user, size_t bytes, size_t alignment) {
    unsigned char *raw = (unsigned char *)malloc(bytes + alignment + sizeof(void *));
    unsigned char *data = raw + sizeof(void *);
    ((events_t *)user)->allocated++;
    data += (alignment - (uintptr_t)data % alignment) % alignment;
    memcpy(data - sizeof(void *), &raw, sizeof raw);
    return data;
}

static void event_free(void *user, void *data, size_t bytes, size_t alignment) {
    void *raw;
    (void)bytes;
    (void)alignment;
    ((events_t *)user)->freed++;
    memcpy(&raw, (unsigned char *)data - sizeof raw, sizeof raw);
    free(raw);
}

/* Behaviour 29: one allocation for one commit of the main arena, none for an empty persistent arena, one release. */
static void events_are_those_of_the_arenas(void) {
    events_t events = {0, 0};
    arenite_source_t source;
    arenite_incremental_t *i;
    memset(&source, 0, sizeof source);
    source.kind = ARENITE_SOURCE_CALLBACKS;
    source.allocate = event_allocate;
    source.deallocate = event_free;
    source.user = &events;
    i = create_with(0, &source);
    CHECK_EQ(events.allocated, 0);
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_OK(arenite_incremental_reset(i));
    CHECK_OK(arenite_incremental_execute(i, 0, 2));
    CHECK_EQ(events.allocated, 1);
    CHECK_EQ(events.freed, 0);
    arenite_incremental_destroy(i);
    CHECK_EQ(events.allocated, 1);
    CHECK_EQ(events.freed, 1);
}

int main(void) {
    RUN(what_came_before_stays);
    RUN(persistent_contents_survive);
    RUN(release_and_acquire);
    RUN(growing_without_a_reset_harms_nobody);
    RUN(preserve_all_and_errors);
    RUN(an_overrun_names_the_node);
    RUN(runs_that_need_little_give_memory_back);
    RUN(the_numbers_of_a_run);
    RUN(mapped_pages_keep_their_contents);
    RUN(events_are_those_of_the_arenas);
    return DONE();
}
