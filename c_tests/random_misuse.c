/*
 * Random calls with random arguments, right and wrong, on live objects: nothing may crash, and a failure leaves its outputs
 * alone. Run it under AddressSanitizer and UndefinedBehaviorSanitizer.
 *   misuse [ROUNDS [SEED]]
 */
#include "lite_arrays.h"

#define LIVE 4 /* objects of each type */

static uint32_t state = 2463534242u;

static uint32_t below(uint32_t n) { return next_random(&state) % n; }

/* One in `n`. */
static int rarely(uint32_t n) { return below(n) == 0; }

static uint32_t any_u32(void) {
    static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 128, 65536, 131072, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFEu, 0xFFFFFFFFu};
    return rarely(4) ? next_random(&state) : values[below(COUNT(values))];
}

static uint64_t any_u64(void) {
    static const uint64_t values[] = {0, 1, 64, 100, 127, 128, 4096, 1u << 20, (uint64_t)SIZE_MAX / 2, UINT64_MAX / 2,
                                      UINT64_MAX - 127, UINT64_MAX - 1, UINT64_MAX};
    return rarely(2) ? below(5000) : values[below(COUNT(values))];
}

/* Sizes that are mostly sensible, so that later calls have something to work on. */
static uint64_t some_bytes(void) { return rarely(40) ? any_u64() : below(3000); }

static int32_t any_index(int32_t n) {
    static const int32_t values[] = {-1, -2, INT32_MAX, INT32_MIN};
    return rarely(60) ? values[below(4)] : (int32_t)below((uint32_t)n + 1) - 1;
}

/* A count for an array of `room`: right, too small, or absurd; an absurd one must be refused before anything is read. */
static uint64_t any_count(uint64_t room) {
    static const uint64_t absurd[] = {UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 62};
    return rarely(30) ? absurd[below(3)] : rarely(3) ? below((uint32_t)room + 1) : room;
}

static uint32_t any_flags(uint32_t known) { return rarely(40) ? any_u32() : next_random(&state) & known; }

static uint32_t any_size(size_t right) {
    static const uint32_t wrong[] = {0, 1, 4, 7, 8, 0xFFFFFFFFu};
    return rarely(50) ? wrong[below(6)] : (uint32_t)right;
}

static uint32_t any_align(void) { return rarely(30) ? any_u32() : rarely(2) ? 0 : 1u << below(13); }

static arenite_graph_t *graphs[LIVE];
static arenite_planner_t *planners[LIVE];
static arenite_plan_t *plans[LIVE];
static arenite_arena_t *arenas[LIVE];
static unsigned char memory[65536];
static unsigned long calls, succeeded, planned[2];

/* A live object, or sometimes null or one of another type. */
static void *any_of(void *right) {
    void *wrong[3];
    if (!rarely(40)) {
        return right;
    }
    wrong[0] = NULL;
    wrong[1] = graphs[below(LIVE)];
    wrong[2] = planners[below(LIVE)];
    return wrong[below(3)];
}

#define GRAPH ((arenite_graph_t *)any_of(graphs[below(LIVE)]))
#define PLANNER ((arenite_planner_t *)any_of(planners[below(LIVE)]))
#define PLAN ((arenite_plan_t *)any_of(plans[below(LIVE)]))
#define ARENA ((arenite_arena_t *)any_of(arenas[below(LIVE)]))
#define MAYBE(pointer) (rarely(40) ? NULL : (pointer))

static void done(arenite_status_t status) {
    calls++;
    succeeded += status == ARENITE_OK;
    CHECK(status >= ARENITE_OK && status < ARENITE_ERR_INTERNAL);
}

static void fill_random_node(node_t *n, uint32_t *subgraphs) {
    fill_node(n, any_index(12), any_index(12), any_index(12), any_index(12));
    n->desc.struct_size = any_size(sizeof n->desc);
    n->desc.flags = any_flags(0);
    n->desc.inputs = MAYBE(n->inputs);
    n->desc.input_count = any_count(2);
    n->desc.outputs = MAYBE(n->outputs);
    n->desc.output_count = any_count(2);
    n->desc.temporaries = rarely(3) ? n->inputs : NULL;
    n->desc.temporary_count = n->desc.temporaries != NULL ? any_count(1) : (uint64_t)rarely(40);
    n->desc.inplace = rarely(3) ? any_u64() : 0;
    n->desc.alignment = any_align();
    if (rarely(6)) {
        subgraphs[0] = rarely(20) ? any_u32() : below(3);
        subgraphs[1] = below(3);
        n->desc.call = rarely(20) ? any_u32() : 1 + below(3);
        n->desc.subgraphs = MAYBE(subgraphs);
        n->desc.subgraph_count = any_count(2);
    }
}

static void on_graphs(void) {
    const int32_t list[3] = {any_index(12), any_index(12), any_index(12)};
    uint32_t index = 77, subgraphs[2];
    arenite_lifetime_t l[8];
    arenite_status_t status = ARENITE_OK;
    switch (below(8)) {
        case 0: {
            arenite_tensor_desc_t d;
            INIT(d);
            d.struct_size = any_size(sizeof d);
            d.flags = any_flags(rarely(10) ? 3 : 0);
            d.bytes = some_bytes();
            d.allocation_type = rarely(30) ? any_u32() : rarely(4) ? below(9) : (uint32_t)kAreniteArenaRw;
            d.alignment = any_align();
            done(status = arenite_graph_add_tensor(GRAPH, MAYBE(&d), MAYBE(&index)));
            break;
        }
        case 1: {
            node_t n;
            fill_random_node(&n, subgraphs);
            done(status = arenite_graph_add_node(GRAPH, MAYBE(&n.desc), MAYBE(&index)));
            break;
        }
        case 2: done(arenite_graph_set_inputs(GRAPH, MAYBE(list), any_count(3))); break;
        case 3: done(arenite_graph_set_outputs(GRAPH, MAYBE(list), any_count(3))); break;
        case 4: done(arenite_graph_set_variables(GRAPH, rarely(4) ? list : NULL, below(2))); break;
        case 5: done(arenite_graph_set_bytes(GRAPH, rarely(20) ? any_u32() : below(12), some_bytes())); break;
        case 6:
            if (rarely(6)) {
                done(status = arenite_graph_attach(GRAPH, GRAPH, MAYBE(&index)));
            } else if (rarely(6)) {
                done(arenite_graph_pin(GRAPH, rarely(20) ? any_u32() : below(12), rarely(20) ? any_u32() : below(8)));
            }
            break;
        default: {
            arenite_graph_options_t o = graph_options(any_flags(7), rarely(20) ? any_u32() : below(3));
            o.alignment = any_align();
            o.struct_size = any_size(sizeof o);
            memset(l, 0x77, sizeof l);
            status = arenite_graph_lifetimes(GRAPH, rarely(3) ? NULL : &o, rarely(4) ? any_u32() : 0, MAYBE(l), any_count(8));
            done(status);
            CHECK(status == ARENITE_OK || l[0].first == 0x77777777u);
        }
    }
    if (status != ARENITE_OK) {
        CHECK_EQ(index, 77);
    }
}

static void on_planners(void) {
    uint32_t index = 77;
    uint64_t offsets[16], bytes = 77;
    int i;
    switch (below(5)) {
        case 0:
        case 1: {
            arenite_span_t spans[3];
            arenite_buffer_desc_t d = buffer(some_bytes(), below(20), 0);
            d.last = d.first + below(6) - (uint32_t)rarely(30);
            d.struct_size = any_size(sizeof d);
            d.flags = any_flags(rarely(8) ? 3 : 1);
            d.alignment = any_align();
            d.fixed_offset = rarely(3) ? any_u64() : 128 * below(40);
            d.reserved = (uint32_t)rarely(60);
            if (rarely(4)) {
                for (i = 0; i < 3; i++) {
                    spans[i].first = (uint32_t)i * 5 + below(3) - (uint32_t)(i > 0 && rarely(20)) * 6;
                    spans[i].last = spans[i].first + below(3);
                }
                d.spans = MAYBE(spans);
                d.span_count = any_count(3);
            }
            done(arenite_planner_add(PLANNER, MAYBE(&d), MAYBE(&index)));
            break;
        }
        case 2: done(arenite_planner_alias(PLANNER, rarely(20) ? any_u32() : below(16), rarely(20) ? any_u32() : below(16), rarely(2) ? 0 : any_u64())); break;
        case 3:
            if (rarely(12)) {
                done(arenite_planner_clear(PLANNER));
            }
            break;
        default: {
            arenite_status_t status;
            for (i = 0; i < 16; i++) {
                offsets[i] = rarely(4) ? any_u64() : 128 * below(1000);
            }
            status = arenite_planner_check(PLANNER, MAYBE(offsets), any_count(16), MAYBE(&bytes));
            done(status);
            CHECK(status == ARENITE_OK || bytes == 77);
        }
    }
}

/* Replaces a plan by a new one of a random planner or graph. */
static void new_plan(void) {
    arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
    arenite_status_t status;
    const uint32_t slot = below(LIVE), of_graph = below(2);
    if (!of_graph) {
        status = arenite_planner_plan(PLANNER, MAYBE(&plan));
    } else {
        arenite_graph_options_t o = graph_options(any_flags(7), below(3));
        o.alignment = any_align();
        status = arenite_planner_plan_graph(PLANNER, GRAPH, MAYBE(&o), MAYBE(&plan));
    }
    done(status);
    if (status == ARENITE_OK) {
        planned[of_graph]++;
        CHECK_OK(arenite_plan_check(plan));
        CHECK_OK(arenite_plan_destroy(plans[slot]));
        plans[slot] = plan;
    } else {
        CHECK(plan == UNTOUCHED(arenite_plan_t));
    }
}

static void on_plans(void) {
    uint64_t offset = 77;
    size_t bytes = 77;
    arenite_plan_info_t info;
    arenite_plan_tensor_t t;
    INIT(info);
    INIT(t);
    info.struct_size = any_size(sizeof info);
    info.flags = any_flags(0);
    t.struct_size = any_size(sizeof t);
    switch (below(5)) {
        case 0: done(arenite_plan_info(PLAN, MAYBE(&info))); break;
        case 1: done(arenite_plan_offset(PLAN, rarely(3) ? any_u32() : below(10), MAYBE(&offset))); break;
        case 2: done(arenite_plan_tensor(PLAN, rarely(3) ? any_u32() : 0, rarely(3) ? any_u32() : below(10), MAYBE(&t))); break;
        case 3:
            done(arenite_plan_required_bytes(PLAN, rarely(4) ? any_u32() : 1 + below(2), (const void *)(uintptr_t)any_u64(), MAYBE(&bytes)));
            break;
        default: done(arenite_plan_check(PLAN));
    }
}

static int refuse_now;

static void *grant(void *user, size_t bytes, size_t alignment) {
    size_t at = *(size_t *)user;
    if (refuse_now || bytes > sizeof memory / 4) {
        return NULL;
    }
    at = (size_t)round_up((uintptr_t)memory + at, alignment) - (uintptr_t)memory + (refuse_now ? 1 : 0);
    if (at > sizeof memory || sizeof memory - at < bytes) {
        return NULL;
    }
    *(size_t *)user = at + bytes;
    return memory + at + (rarely(10) ? 1 : 0); /* sometimes misaligned */
}

static void give_back(void *user, void *data, size_t bytes, size_t alignment) {
    (void)user;
    (void)bytes;
    (void)alignment;
    CHECK((unsigned char *)data >= memory && (unsigned char *)data < memory + sizeof memory);
}

static void new_arena(void) {
    static size_t used;
    arenite_arena_options_t o;
    arenite_arena_t *arena = UNTOUCHED(arenite_arena_t);
    arenite_failure_t f = no_failure();
    arenite_status_t status;
    const uint32_t slot = below(LIVE);
    INIT(o);
    used = 0; /* callbacks and buffers may overlap: nothing here reads what it wrote */
    o.struct_size = any_size(sizeof o);
    o.flags = any_flags(0);
    o.main.kind = rarely(20) ? any_u32() : below(3);
    o.main.base = MAYBE(memory + below(256));
    o.main.bytes = below(16384);
    o.main.allocate = rarely(40) ? NULL : grant;
    o.main.deallocate = rarely(40) ? NULL : give_back;
    o.main.user = &used;
    o.persistent = o.main;
    o.persistent.kind = below(3);
    f.struct_size = any_size(sizeof f);
    status = arenite_arena_create(PLAN, MAYBE(&o), MAYBE(&arena), MAYBE(&f));
    done(status);
    if (status == ARENITE_OK) {
        CHECK_OK(arenite_arena_destroy(arenas[slot]));
        arenas[slot] = arena;
    } else {
        CHECK(arena == UNTOUCHED(arenite_arena_t));
    }
}

static void on_arenas(void) {
    void *data = UNTOUCHED(void);
    size_t bytes = 77;
    uint64_t generation = 77;
    arenite_status_t status;
    refuse_now = rarely(4);
    switch (below(7)) {
        case 0: done(arenite_arena_commit(ARENA)); break;
        case 1: done(arenite_arena_release(ARENA)); break;
        case 2:
            status = arenite_arena_resolve(ARENA, rarely(10) ? any_u32() : 0, rarely(10) ? any_u32() : below(10), MAYBE(&data), MAYBE(&bytes));
            done(status);
            if (status == ARENITE_OK && data != NULL && bytes != 77) {
                memset(data, 0x11, bytes);
            }
            CHECK(status == ARENITE_OK || (data == UNTOUCHED(void) && bytes == 77));
            break;
        case 3: {
            lite_t l;
            memset(&l, 0, sizeof l);
            done(arenite_arena_assign(ARENA, rarely(10) ? any_u32() : 0, rarely(10) ? any_u32() : ARENITE_LAYOUT_FULL, MAYBE(l.tensors), below(LITE_MOST + 1)));
            break;
        }
        case 4: done(arenite_arena_generation(ARENA, MAYBE(&generation))); break;
        case 5: done(arenite_arena_committed_bytes(ARENA, below(4), MAYBE(&bytes))); break;
        default:
            done(arenite_arena_bind_constant(ARENA, rarely(10) ? any_u32() : 0, rarely(10) ? any_u32() : below(10), MAYBE(memory), (size_t)any_u64()));
    }
}

/* Mirror arrays with wrong indices, lists and types; planned with and without a heap. */
static void on_arrays(void) {
    static unsigned char workspace[8192];
    lite_t l;
    arenite_lite_desc_t d;
    arenite_graph_t *graph = UNTOUCHED(arenite_graph_t);
    arenite_failure_t f = no_failure();
    uint64_t offsets[LITE_MOST], arena = 77;
    size_t needed = 0;
    int32_t order[4];
    arenite_status_t status;
    int i;
    const uint32_t slot = below(LIVE);
    lite_random(&l, &state, 1);
    for (i = 0; i < 3; i++) {
        if (rarely(6)) {
            l.lists[below((uint32_t)l.node_count)][below(3)][1] = any_index(30);
        }
        if (rarely(20)) {
            l.lists[below((uint32_t)l.node_count)][below(3)][0] = -(int32_t)below(3);
        }
        if (rarely(20)) {
            l.tensors[below((uint32_t)l.tensor_count)].allocation_type = any_u32();
        }
        if (rarely(20)) {
            l.tensors[below((uint32_t)l.tensor_count)].bytes = (size_t)any_u64();
        }
        if (rarely(20)) {
            l.alignments[below(LITE_MOST)] = any_u32();
        }
        l.inplace[below(LITE_MOST)] = any_u64();
    }
    d = lite_desc(&l, rarely(20) ? any_u32() : 1 + below(2));
    d.struct_size = any_size(sizeof d);
    d.flags = any_flags(0);
    d.reserved = (uint32_t)rarely(60);
    d.tensors = MAYBE(d.tensors);
    d.nodes = MAYBE(d.nodes);
    d.node_stride = rarely(30) ? any_u64() % 80 : 0; /* never past what a full node has */
    d.inputs = MAYBE(d.inputs);
    d.input_count = any_count(1);
    d.output_count = any_count(1);
    if (rarely(4)) {
        for (i = 0; i < 4; i++) {
            order[i] = rarely(20) ? any_index(30) : (int32_t)below((uint32_t)l.node_count);
        }
        d.execution_plan = MAYBE(order);
        d.execution_plan_count = any_count(4);
    }
    if (rarely(2)) {
        status = arenite_graph_create_lite(MAYBE(&d), MAYBE(&graph), MAYBE(&f));
        done(status);
        if (status == ARENITE_OK) {
            CHECK_OK(arenite_graph_destroy(graphs[slot]));
            graphs[slot] = graph;
        } else {
            CHECK(graph == UNTOUCHED(arenite_graph_t));
        }
    } else {
        CHECK_OK(arenite_bare_workspace_bytes(l.tensor_count, &needed));
        offsets[0] = 7;
        needed = rarely(10) ? below((uint32_t)needed) : needed;
        status = arenite_bare_plan(MAYBE(&d), NULL, rarely(10) ? any_u32() : 1 + below(3), MAYBE(workspace + below(16)),
                                   needed, MAYBE(offsets), any_count(LITE_MOST), MAYBE(&arena), MAYBE(&f));
        done(status);
        CHECK(status == ARENITE_OK || (arena == 77 && offsets[0] == 7));
    }
}

static void on_rows(void) {
    static unsigned char workspace[8192];
    arenite_row_t rows[8];
    uint64_t offsets[8] = {7}, arena = 77;
    arenite_failure_t f = no_failure();
    size_t needed = 0;
    arenite_status_t status;
    int i;
    for (i = 0; i < 8; i++) {
        rows[i].bytes = some_bytes();
        rows[i].fixed_offset = rarely(4) ? any_u64() : 128 * below(20);
        rows[i].first = below(10);
        rows[i].last = rows[i].first + below(5) - (uint32_t)rarely(60);
        rows[i].alignment = any_align();
        rows[i].flags = any_flags(rarely(10) ? 3 : 1);
    }
    CHECK_OK(arenite_bare_workspace_bytes(8, &needed));
    status = arenite_bare_place(rarely(10) ? any_u32() : 1 + below(3), MAYBE(rows), any_count(8), MAYBE(workspace + below(16)),
                                rarely(10) ? below((uint32_t)needed) : needed, MAYBE(offsets), MAYBE(&arena), MAYBE(&f));
    done(status);
    CHECK(status == ARENITE_OK || (arena == 77 && offsets[0] == 7));
}

/* Failure records and destruction; destroyed objects are replaced at once. */
static void on_objects(void) {
    const uint32_t slot = below(LIVE);
    arenite_failure_t f = no_failure();
    f.struct_size = any_size(sizeof f);
    f.flags = any_flags(0);
    switch (below(8)) {
        case 0: done(arenite_graph_last_failure(GRAPH, MAYBE(&f))); break;
        case 1: done(arenite_planner_last_failure(PLANNER, MAYBE(&f))); break;
        case 2: done(arenite_plan_last_failure(PLAN, MAYBE(&f))); break;
        case 3: done(arenite_arena_last_failure(ARENA, MAYBE(&f))); break;
        case 4:
            if (rarely(3)) {
                CHECK_OK(arenite_graph_destroy(graphs[slot]));
                graphs[slot] = NULL;
                done(arenite_graph_create(&graphs[slot]));
            }
            break;
        case 5:
            if (rarely(3)) {
                arenite_planner_options_t o;
                arenite_planner_t *planner = NULL;
                INIT(o);
                o.struct_size = any_size(sizeof o);
                o.strategy = rarely(10) ? any_u32() : below(5);
                o.effort = rarely(2) ? 1 : below(200); /* the test is of the interface, not of the search */
                o.effort += (uint64_t)(o.effort == 0);
                done(arenite_planner_create(&o, MAYBE(&planner), MAYBE(&f)));
                if (planner != NULL) {
                    CHECK_OK(arenite_planner_destroy(planners[slot]));
                    planners[slot] = planner;
                }
            }
            break;
        case 6:
            CHECK(arenite_status_name((arenite_status_t)any_u32()) != NULL);
            done(arenite_layout_check(any_u32(), (size_t)any_u64(), (size_t)any_u64()));
            break;
        default: {
            /* An object of another type is never destroyed. */
            void *wrong = graphs[slot];
            CHECK_STATUS(arenite_plan_destroy((arenite_plan_t *)wrong), ARENITE_ERR_ARGUMENT);
            CHECK_STATUS(arenite_planner_destroy((arenite_planner_t *)wrong), ARENITE_ERR_ARGUMENT);
            CHECK_STATUS(arenite_arena_destroy((arenite_arena_t *)wrong), ARENITE_ERR_ARGUMENT);
        }
    }
}

static unsigned long rounds = 100000;

static void random_calls(void) {
    unsigned long round;
    uint32_t i;
    for (i = 0; i < LIVE; i++) {
        graphs[i] = new_graph();
        planners[i] = new_planner(1 + i % 3);
        plans[i] = plan_of(planners[i]);
        CHECK_OK(arenite_arena_create(plans[i], NULL, &arenas[i], NULL));
    }
    for (round = 0; round < rounds && check_failed < 20; round++) {
        switch (below(12)) {
            case 0:
            case 1:
            case 2: on_graphs(); break;
            case 3:
            case 4: on_planners(); break;
            case 5: new_plan(); break;
            case 6: on_plans(); break;
            case 7: new_arena(); break;
            case 8: on_arenas(); break;
            case 9: on_arrays(); break;
            case 10: on_rows(); break;
            default: on_objects();
        }
    }
    for (i = 0; i < LIVE; i++) {
        CHECK_OK(arenite_arena_destroy(arenas[i]));
        CHECK_OK(arenite_plan_destroy(plans[i]));
        CHECK_OK(arenite_planner_destroy(planners[i]));
        CHECK_OK(arenite_graph_destroy(graphs[i]));
    }
    printf("%lu calls, of them %lu succeeded; %lu problems and %lu graphs planned\n", calls, succeeded, planned[0],
           planned[1]);
    CHECK(succeeded > calls / 4);
    CHECK(planned[0] > rounds / 1000 && planned[1] > rounds / 1000);
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : rounds;
    state = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : state;
    RUN(random_calls);
    return DONE();
}
