/* The arena: exact sizes, every source of memory, pointers and when they change, constants, and callbacks that misbehave. */
#include "helpers.h"

static unsigned char pool[16384 + 256]; /* callers' buffers are cut from it at chosen addresses */

/* The address in `pool` that is `rest` past a multiple of 128. */
static unsigned char *pool_at(size_t rest) {
    const uintptr_t start = (uintptr_t)pool;
    return pool + (128 - start % 128) % 128 + rest;
}

static arenite_arena_options_t in_buffer(void *base, size_t bytes) {
    arenite_arena_options_t o;
    INIT(o);
    o.main.kind = ARENITE_SOURCE_BUFFER;
    o.main.base = base;
    o.main.bytes = bytes;
    return o;
}

/* Buffers of 100, 200 and 3000 bytes: the arena has 3000 + 200 and its rounding. */
static arenite_plan_t *small_plan(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan;
    add(planner, 100, 0, 1);
    add(planner, 200, 1, 2);
    add(planner, 3000, 2, 3);
    plan = plan_of(planner);
    CHECK_OK(arenite_planner_destroy(planner));
    return plan;
}

/* x 1000 -> y 1000 -> z 1000 with a constant of 64 bytes (3), a persistent 256 (4), a dynamic (5) and an unused one (6). */
static arenite_graph_t *mixed_graph(void) {
    arenite_graph_t *graph = new_graph();
    int i;
    for (i = 0; i < 3; i++) {
        add_tensor(graph, 1000);
    }
    add_typed(graph, 64, kAreniteMmapRo);
    add_typed(graph, 256, kAreniteArenaRwPersistent);
    add_typed(graph, 512, kAreniteDynamic);
    add_tensor(graph, 77);
    add_node(graph, 0, 3, 1, 5);
    add_node(graph, 1, -1, 2, 4);
    set_ends(graph, 0, 2);
    return graph;
}

static arenite_plan_t *mixed_plan(void) {
    arenite_graph_t *graph = mixed_graph();
    arenite_plan_t *plan = plan_graph(graph, NULL);
    CHECK_OK(arenite_graph_destroy(graph));
    return plan;
}

static uint64_t generation(const arenite_arena_t *arena) {
    uint64_t g = 0;
    CHECK_OK(arenite_arena_generation(arena, &g));
    return g;
}

static size_t committed(const arenite_arena_t *arena, uint32_t which) {
    size_t bytes = 0x7777;
    CHECK_OK(arenite_arena_committed_bytes(arena, which, &bytes));
    return bytes;
}

static void *resolve(const arenite_arena_t *arena, uint32_t tensor) {
    void *data = NULL;
    CHECK_OK(arenite_arena_resolve(arena, 0, tensor, &data, NULL));
    return data;
}

static void create_refuses(void) {
    arenite_plan_t *plan = small_plan();
    arenite_arena_t *arena = UNTOUCHED(arenite_arena_t);
    arenite_arena_options_t o;
    arenite_failure_t f = no_failure();
    void *wrong;
    CHECK_STATUS(arenite_arena_create(NULL, NULL, &arena, &f), ARENITE_ERR_NULL);
    CHECK_EQ(f.status, ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_create(plan, NULL, NULL, NULL), ARENITE_ERR_NULL);
    wrong = new_graph();
    CHECK_STATUS(arenite_arena_create((const arenite_plan_t *)wrong, NULL, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_graph_destroy((arenite_graph_t *)wrong));
    memset(&o, 0, sizeof o);
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_ARGUMENT);
    INIT(o);
    o.flags = 1;
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_ARGUMENT);
    INIT(o);
    o.main.kind = 9;
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(f.needed, 9);
    INIT(o);
    o.persistent.kind = 0xFFFFFFFFu;
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_ARGUMENT);
    INIT(o);
    o.persistent.reserved = 1;
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_ARGUMENT);
    o = in_buffer(NULL, 100);
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_NULL);
    INIT(o);
    o.main.kind = ARENITE_SOURCE_CALLBACKS;
    CHECK_STATUS(arenite_arena_create(plan, &o, &arena, &f), ARENITE_ERR_NULL);
    CHECK(arena == UNTOUCHED(arenite_arena_t));
    CHECK_OK(arenite_arena_destroy(NULL));
    CHECK_OK(arenite_plan_destroy(plan));
}

static void addresses_come_with_the_commit(void) {
    arenite_plan_t *plan = small_plan();
    arenite_arena_t *arena = NULL;
    void *data = UNTOUCHED(void);
    size_t bytes = 77;
    uint32_t t;
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), 0);
    CHECK_STATUS(arenite_arena_resolve(arena, 0, 1, &data, &bytes), ARENITE_ERR_STALE);
    CHECK_EQ(arena_failure(arena).subject_index, 1);
    CHECK_EQ(arena_failure(arena).subject_kind, ARENITE_SUBJECT_TENSOR);
    CHECK(data == UNTOUCHED(void) && bytes == 77);
    CHECK_OK(arenite_arena_commit(arena));
    CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), info_of(plan).arena_bytes);
    for (t = 0; t < 3; t++) {
        CHECK_OK(arenite_arena_resolve(arena, 0, t, &data, &bytes));
        CHECK_EQ((uintptr_t)data % 128, 0);
        CHECK_EQ(bytes, t == 0 ? 100 : t == 1 ? 200 : 3000);
        CHECK_EQ((char *)data - (char *)resolve(arena, 0), (long)(offset_of(plan, t) - offset_of(plan, 0)));
        memset(data, 0x5A, bytes);
    }
    data = UNTOUCHED(void);
    bytes = 77;
    CHECK_STATUS(arenite_arena_resolve(arena, 0, 3, &data, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(arena_failure(arena).subject_index, 3);
    CHECK_STATUS(arenite_arena_resolve(arena, 1, 0, &data, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_resolve(arena, 0xFFFFFFFFu, 0xFFFFFFFFu, &data, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_resolve(arena, 0, 0, NULL, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_resolve(NULL, 0, 0, &data, &bytes), ARENITE_ERR_NULL);
    CHECK(data == UNTOUCHED(void) && bytes == 77);
    CHECK_STATUS(arenite_arena_committed_bytes(arena, ARENITE_ARENA_NONE, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_committed_bytes(arena, 0xFFFFFFFFu, &bytes), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_committed_bytes(arena, ARENITE_ARENA_MAIN, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_committed_bytes(NULL, ARENITE_ARENA_MAIN, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_generation(arena, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_generation(NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_commit(NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_release(NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_last_failure(NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_last_failure(arena, NULL), ARENITE_ERR_NULL);
    CHECK_EQ(bytes, 77);
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
}

/* BR-28: at every misalignment the size asked for works, and one byte less says that one is missing. */
static void br_28_a_callers_buffer_at_every_misalignment(void) {
    arenite_plan_t *plan = small_plan();
    size_t rest;
    for (rest = 0; rest < 128; rest++) {
        unsigned char *base = pool_at(rest);
        arenite_arena_t *arena = NULL;
        arenite_arena_options_t o;
        size_t needed = 0, k;
        uint32_t t;
        CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, base, &needed));
        CHECK_EQ(needed, info_of(plan).arena_bytes + (128 - rest) % 128);
        CHECK(needed <= info_of(plan).arena_bytes + 127);

        o = in_buffer(base, needed - 1);
        CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
        CHECK_STATUS(arenite_arena_commit(arena), ARENITE_ERR_CAPACITY);
        CHECK_EQ(arena_failure(arena).needed, needed);
        CHECK_EQ(arena_failure(arena).available, needed - 1);
        CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), 0);
        CHECK_OK(arenite_arena_destroy(arena));

        memset(pool, 0xEE, sizeof pool);
        o = in_buffer(base, needed);
        CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
        CHECK_OK(arenite_arena_commit(arena));
        for (t = 0; t < 3; t++) {
            void *data = NULL;
            size_t bytes = 0;
            CHECK_OK(arenite_arena_resolve(arena, 0, t, &data, &bytes));
            CHECK_EQ((uintptr_t)data % 128, 0);
            CHECK((unsigned char *)data >= base && (unsigned char *)data + bytes <= base + needed);
            memset(data, 1, bytes);
        }
        CHECK_OK(arenite_arena_destroy(arena));
        for (k = 0; pool + k < base; k++) {
            if (pool[k] != 0xEE) {
                CHECK(!"written before the buffer");
                break;
            }
        }
        for (k = (size_t)(base - pool) + needed; k < sizeof pool; k++) {
            if (pool[k] != 0xEE) {
                CHECK(!"written after the buffer");
                break;
            }
        }
    }
    CHECK_OK(arenite_plan_destroy(plan));
}

/* BR-26: every size is OK or CAPACITY, OK stays OK, and what is missing falls by one per byte. */
static void br_26_every_size_of_a_callers_buffer(void) {
    arenite_plan_t *plan = small_plan();
    const size_t rests[] = {0, 1, 64, 127};
    size_t k, size, needed = 0;
    for (k = 0; k < COUNT(rests); k++) {
        unsigned char *base = pool_at(rests[k]);
        CHECK_OK(arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, base, &needed));
        for (size = 0; size <= needed + 256; size++) {
            arenite_arena_options_t o = in_buffer(base, size);
            arenite_arena_t *arena = NULL;
            arenite_status_t status;
            CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
            status = arenite_arena_commit(arena);
            CHECK_EQ(status, size >= needed ? ARENITE_OK : ARENITE_ERR_CAPACITY);
            if (status != ARENITE_OK) {
                const arenite_failure_t f = arena_failure(arena);
                CHECK_EQ(f.needed - f.available, needed - size);
            }
            CHECK_OK(arenite_arena_destroy(arena));
        }
    }
    CHECK_OK(arenite_plan_destroy(plan));
}

/* BR-23: a buffer that ends at the top of the address space, and arenas that are larger than it. Nothing is accessed. */
static void br_23_near_the_top_of_the_address_space(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    const uint64_t sizes[] = {(uint64_t)SIZE_MAX - 191, (uint64_t)SIZE_MAX / 2, 4097};
    size_t i;
    for (i = 0; i < COUNT(sizes); i++) {
        arenite_arena_options_t o = in_buffer((void *)(UINTPTR_MAX - 4095), 4096);
        arenite_arena_t *arena = NULL;
        arenite_plan_t *plan;
        CHECK_OK(arenite_planner_clear(planner));
        add(planner, sizes[i], 0, 1);
        plan = plan_of(planner);
        CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
        CHECK_STATUS(arenite_arena_commit(arena), ARENITE_ERR_CAPACITY);
        CHECK_EQ(arena_failure(arena).needed, sizes[i]);
        CHECK_EQ(arena_failure(arena).available, 4096);
        CHECK_OK(arenite_arena_destroy(arena));
        /* From the system: refused as an address space or as memory, never granted. */
        if (sizes[i] > 1u << 30) {
            arenite_status_t status;
            CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
            status = arenite_arena_commit(arena);
            CHECK(status == ARENITE_ERR_OVERFLOW || status == ARENITE_ERR_NO_MEMORY);
            CHECK_OK(arenite_arena_destroy(arena));
        }
        CHECK_OK(arenite_plan_destroy(plan));
    }
    CHECK_OK(arenite_planner_destroy(planner));
}

/* ---- callbacks --------------------------------------------------------------------------------- */

typedef struct {
    int grants; /* calls that succeed before one is refused; negative: all */
    int calls, live;
    size_t shift; /* bytes by which the answer misses its alignment */
    size_t bytes, alignment;
    arenite_arena_t *arena; /* called back into, to see BUSY */
    int busy;
} ration_t;

static unsigned char blocks[4][8192];

static void try_everything(ration_t *r) {
    void *data = UNTOUCHED(void);
    size_t bytes = 77;
    uint64_t g = 77;
    arenite_failure_t f = no_failure();
    if (r->arena == NULL) {
        return;
    }
    CHECK_STATUS(arenite_arena_commit(r->arena), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_arena_release(r->arena), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_arena_resolve(r->arena, 0, 0, &data, &bytes), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_arena_generation(r->arena, &g), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_arena_committed_bytes(r->arena, ARENITE_ARENA_MAIN, &bytes), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_arena_bind_constant(r->arena, 0, 3, blocks, 64), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_arena_destroy(r->arena), ARENITE_ERR_BUSY);
    CHECK_OK(arenite_arena_last_failure(r->arena, &f));
    CHECK_EQ(f.status, ARENITE_ERR_BUSY);
    CHECK(data == UNTOUCHED(void) && bytes == 77 && g == 77);
    r->busy++;
}

static void *allocate(void *user, size_t bytes, size_t alignment) {
    ration_t *r = (ration_t *)user;
    unsigned char *block;
    r->calls++;
    try_everything(r);
    if (r->grants == 0) {
        return NULL;
    }
    r->grants -= r->grants > 0;
    r->bytes = bytes;
    r->alignment = alignment;
    block = blocks[r->live++ % 4];
    block += (128 - (uintptr_t)block % 128) % 128;
    CHECK(bytes + 256 <= sizeof blocks[0]);
    return block + r->shift;
}

static void deallocate(void *user, void *data, size_t bytes, size_t alignment) {
    ration_t *r = (ration_t *)user;
    CHECK(data != NULL && bytes > 0 && alignment >= 128);
    r->live--;
    try_everything(r);
}

static arenite_arena_options_t from_callbacks(ration_t *r) {
    arenite_arena_options_t o;
    INIT(o);
    o.main.kind = o.persistent.kind = ARENITE_SOURCE_CALLBACKS;
    o.main.allocate = o.persistent.allocate = allocate;
    o.main.deallocate = o.persistent.deallocate = deallocate;
    o.main.user = o.persistent.user = r;
    return o;
}

/* BR-29: refused at call k, for every k; the arena is as before and a later try succeeds. */
static void br_29_callbacks_that_fail(void) {
    arenite_plan_t *plan = mixed_plan();
    int k;
    for (k = 0; k <= 20; k++) {
        ration_t r;
        arenite_arena_options_t o;
        arenite_arena_t *arena = NULL;
        int round;
        memset(&r, 0, sizeof r);
        r.grants = k;
        o = from_callbacks(&r);
        CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
        for (round = 0; round < 20; round++) { /* commits and releases until the rations end */
            const uint64_t before = generation(arena);
            const size_t main_bytes = committed(arena, ARENITE_ARENA_MAIN);
            const size_t persistent_bytes = committed(arena, ARENITE_ARENA_PERSISTENT);
            const arenite_status_t status = arenite_arena_commit(arena);
            if (status != ARENITE_OK) {
                CHECK_EQ(status, ARENITE_ERR_NO_MEMORY);
                CHECK_EQ(generation(arena), before);
                CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), main_bytes);
                CHECK_EQ(committed(arena, ARENITE_ARENA_PERSISTENT), persistent_bytes);
                CHECK_EQ(r.live, persistent_bytes > 0 ? 1 : 0);
                CHECK(arena_failure(arena).needed == info_of(plan).arena_bytes || persistent_bytes == 0);
                break;
            }
            CHECK_OK(arenite_arena_release(arena));
        }
        CHECK(k >= 20 || round < 20);
        r.grants = -1;
        CHECK_OK(arenite_arena_commit(arena));
        CHECK_EQ(r.live, 2);
        memset(resolve(arena, 1), 3, 1000);
        CHECK_OK(arenite_arena_destroy(arena));
        CHECK_EQ(r.live, 0);
    }
    CHECK_OK(arenite_plan_destroy(plan));
}

static void callbacks_that_miss_the_alignment(void) {
    arenite_plan_t *plan = mixed_plan();
    size_t shift;
    for (shift = 1; shift < 128; shift += shift < 4 ? 1 : 31) {
        ration_t r;
        arenite_arena_options_t o;
        arenite_arena_t *arena = NULL;
        memset(&r, 0, sizeof r);
        r.grants = -1;
        r.shift = shift;
        o = from_callbacks(&r);
        CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
        CHECK_STATUS(arenite_arena_commit(arena), ARENITE_ERR_ALIGNMENT);
        CHECK_EQ(arena_failure(arena).needed, 128);
        CHECK_EQ(arena_failure(arena).available, shift);
        CHECK_EQ(r.live, 0); /* the block was given back */
        r.shift = 0;
        CHECK_OK(arenite_arena_commit(arena));
        CHECK_OK(arenite_arena_destroy(arena));
        CHECK_EQ(r.live, 0);
    }
    CHECK_OK(arenite_plan_destroy(plan));
}

static void callbacks_that_call_back_find_the_arena_busy(void) {
    arenite_plan_t *plan = mixed_plan();
    arenite_arena_options_t o;
    ration_t r;
    memset(&r, 0, sizeof r);
    r.grants = -1;
    o = from_callbacks(&r);
    CHECK_OK(arenite_arena_create(plan, &o, &r.arena, NULL));
    CHECK_OK(arenite_arena_commit(r.arena));
    CHECK_EQ(r.busy, 2);
    CHECK_EQ(r.alignment, 128);
    CHECK_OK(arenite_arena_release(r.arena));
    CHECK_EQ(r.busy, 3);
    CHECK_OK(arenite_arena_commit(r.arena));
    CHECK_EQ(r.busy, 4);
    CHECK_OK(arenite_arena_destroy(r.arena)); /* gives both back */
    CHECK_EQ(r.busy, 6);
    CHECK_EQ(r.live, 0);
    CHECK_OK(arenite_plan_destroy(plan));
}

/* ---- life of the pointers ----------------------------------------------------------------------- */

/* BR-44, BR-46: released memory is gone, persistent contents stay, and the generation says when to ask again. */
static void br_44_release_and_generation(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_graph_t *graph = mixed_graph();
    arenite_plan_t *plan = NULL;
    arenite_arena_t *arena = NULL;
    unsigned char *persistent;
    void *data = UNTOUCHED(void);
    uint64_t g[5];
    size_t i;
    CHECK_OK(arenite_graph_set_bytes(graph, 1, 40u << 20));
    CHECK_OK(arenite_planner_plan_graph(planner, graph, NULL, &plan));
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    g[0] = generation(arena);
    CHECK_OK(arenite_arena_release(arena)); /* nothing to release */
    CHECK_EQ(generation(arena), g[0]);
    CHECK_OK(arenite_arena_commit(arena));
    g[1] = generation(arena);
    CHECK(g[1] != g[0]);
    CHECK_OK(arenite_arena_commit(arena)); /* held already */
    CHECK_EQ(generation(arena), g[1]);
    CHECK(committed(arena, ARENITE_ARENA_MAIN) >= 40u << 20);
    CHECK_EQ(committed(arena, ARENITE_ARENA_PERSISTENT), 256);
    persistent = (unsigned char *)resolve(arena, 4);
    for (i = 0; i < 256; i++) {
        CHECK_EQ(persistent[i], 0);
    }
    memset(persistent, 0xAB, 256);
    CHECK_OK(arenite_arena_release(arena));
    g[2] = generation(arena);
    CHECK(g[2] != g[1]);
    CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), 0);
    CHECK_EQ(committed(arena, ARENITE_ARENA_PERSISTENT), 256);
    CHECK_STATUS(arenite_arena_resolve(arena, 0, 1, &data, NULL), ARENITE_ERR_STALE);
    CHECK(data == UNTOUCHED(void));
    CHECK(resolve(arena, 4) == persistent);
    CHECK_OK(arenite_arena_commit(arena));
    g[3] = generation(arena);
    CHECK(g[3] != g[2]);
    CHECK(resolve(arena, 4) == persistent);
    for (i = 0; i < 256; i++) {
        CHECK_EQ(persistent[i], 0xAB);
    }
    memset(resolve(arena, 1), 1, 40u << 20);
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* BR-48: what is needed is what is taken, to the byte. */
static void br_48_no_growth_by_doubling(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan;
    arenite_arena_t *arena = NULL;
    add(planner, (16u << 20) + (512u << 10), 0, 1);
    plan = plan_of(planner);
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_OK(arenite_arena_commit(arena));
    CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), (16u << 20) + (512u << 10));
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

static void constants_are_references(void) {
    static const unsigned char weights[64] = {1, 2, 3};
    arenite_plan_t *plan = mixed_plan();
    arenite_arena_t *arena = NULL;
    void *data = UNTOUCHED(void);
    size_t bytes = 77;
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_OK(arenite_arena_resolve(arena, 0, 3, &data, &bytes)); /* not bound yet */
    CHECK(data == NULL && bytes == 0);
    CHECK_STATUS(arenite_arena_bind_constant(arena, 0, 3, weights, 63), ARENITE_ERR_CAPACITY);
    CHECK_EQ(arena_failure(arena).subject_index, 3);
    CHECK_EQ(arena_failure(arena).needed, 64);
    CHECK_EQ(arena_failure(arena).available, 63);
    CHECK_STATUS(arenite_arena_bind_constant(arena, 0, 1, weights, 64), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(arena_failure(arena).subject_index, 1);
    CHECK_STATUS(arenite_arena_bind_constant(arena, 0, 5, weights, 64), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_bind_constant(arena, 0, 7, weights, 64), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_bind_constant(arena, 1, 3, weights, 64), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_bind_constant(arena, 0, 3, NULL, 64), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_bind_constant(NULL, 0, 3, weights, 64), ARENITE_ERR_NULL);
    CHECK_OK(arenite_arena_bind_constant(arena, 0, 3, weights, SIZE_MAX));
    CHECK_OK(arenite_arena_bind_constant(arena, 0, 3, weights, sizeof weights));
    CHECK_OK(arenite_arena_resolve(arena, 0, 3, &data, &bytes)); /* needs no commit */
    CHECK(data == (const void *)weights && bytes == 64);
    CHECK_OK(arenite_arena_resolve(arena, 0, 5, &data, &bytes)); /* dynamic: not ours */
    CHECK(data == NULL && bytes == 0);
    CHECK_OK(arenite_arena_resolve(arena, 0, 6, &data, &bytes)); /* nobody writes it */
    CHECK(data == NULL && bytes == 0);
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
}

/* The engine's own arrays in both layouts: 7 tensors, of which 0 to 2 and 4 are ours and 3 is bound. */
static void assign_fills_both_layouts(void) {
    static const unsigned char weights[64] = {1};
    static const uint32_t types[7] = {kAreniteArenaRw, kAreniteArenaRw, kAreniteArenaRw, kAreniteMmapRo,
                                      kAreniteArenaRwPersistent, kAreniteDynamic, kAreniteArenaRw};
    arenite_plan_t *plan = mixed_plan();
    arenite_arena_t *arena = NULL;
    AreniteTensor full[7], full_before[7];
    AreniteMicroTensor micro[7], micro_before[7];
    void *const engines = UNTOUCHED(void);
    uint32_t i;
    memset(full, 0x77, sizeof full);
    memset(micro, 0x77, sizeof micro);
    for (i = 0; i < 7; i++) {
        full[i].data = micro[i].data = engines;
        full[i].allocation_type = micro[i].allocation_type = types[i];
    }
    memcpy(full_before, full, sizeof full);
    memcpy(micro_before, micro, sizeof micro);
    CHECK_OK(arenite_arena_create(plan, NULL, &arena, NULL));
    CHECK_STATUS(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, full, 7), ARENITE_ERR_STALE);
    CHECK_OK(arenite_arena_commit(arena));
    CHECK_STATUS(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, full, 6), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(arena_failure(arena).needed, 7);
    CHECK_EQ(arena_failure(arena).available, 6);
    CHECK_STATUS(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, full, UINT64_MAX), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_assign(arena, 1, ARENITE_LAYOUT_FULL, full, 7), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(arena_failure(arena).subject_kind, ARENITE_SUBJECT_SUBGRAPH);
    CHECK_STATUS(arenite_arena_assign(arena, 0, 0, full, 7), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_assign(arena, 0, 3, full, 7), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_assign(arena, 0, 0xFFFFFFFFu, full, 7), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, NULL, 7), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_MICRO, (char *)micro + 1, 7), ARENITE_ERR_ALIGNMENT);
    CHECK_STATUS(arenite_arena_assign(NULL, 0, ARENITE_LAYOUT_FULL, full, 7), ARENITE_ERR_NULL);
    CHECK(memcmp(full, full_before, sizeof full) == 0 && memcmp(micro, micro_before, sizeof micro) == 0);

    CHECK_OK(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, full, 7));
    CHECK(full[3].data == engines); /* a constant that is not bound stays the engine's */
    CHECK_OK(arenite_arena_bind_constant(arena, 0, 3, weights, sizeof weights));
    CHECK_OK(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_FULL, full, 7));
    CHECK_OK(arenite_arena_assign(arena, 0, ARENITE_LAYOUT_MICRO, micro, 7));
    for (i = 0; i < 7; i++) {
        void *const expected = i == 5 ? engines : i == 6 ? NULL : resolve(arena, i);
        CHECK(full[i].data == expected);
        CHECK(micro[i].data == expected);
        full[i].data = micro[i].data = engines;
    }
    CHECK(full_before[0].bytes == full[0].bytes); /* and nothing else is written */
    CHECK(memcmp(full, full_before, sizeof full) == 0 && memcmp(micro, micro_before, sizeof micro) == 0);
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
}

/* Both arenas in one caller's buffer each; the persistent one fails first and takes nothing with it. */
static void two_sources(void) {
    arenite_plan_t *plan = mixed_plan();
    arenite_arena_t *arena = NULL;
    arenite_arena_options_t o = in_buffer(pool_at(0), 4096);
    o.persistent.kind = ARENITE_SOURCE_BUFFER;
    o.persistent.base = pool_at(8192 + 1);
    o.persistent.bytes = 256 + 126;
    CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
    CHECK_STATUS(arenite_arena_commit(arena), ARENITE_ERR_CAPACITY);
    CHECK_EQ(arena_failure(arena).needed, 256 + 127);
    CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), 0);
    CHECK_OK(arenite_arena_destroy(arena));
    memset(pool, 0xEE, sizeof pool);
    o.persistent.bytes++;
    CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
    CHECK_OK(arenite_arena_commit(arena));
    CHECK(resolve(arena, 4) == (void *)pool_at(8192 + 128));
    CHECK_EQ(*pool_at(8192 + 128), 0);           /* zeroed */
    CHECK_EQ(*pool_at(8192 + 127), 0xEE);        /* only the arena itself */
    CHECK_EQ(*pool_at(8192 + 128 + 256), 0xEE);
    CHECK_EQ(*pool_at(0), 0xEE);                 /* the reusable one is not initialised */
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
}

/* A plan without bytes: everything works and nothing is taken. */
static void an_arena_of_nothing(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_arena_options_t o = in_buffer(NULL, 0);
    arenite_plan_t *plan;
    arenite_arena_t *arena = NULL;
    add(planner, 0, 0, 1);
    plan = plan_of(planner);
    CHECK_OK(arenite_arena_create(plan, &o, &arena, NULL));
    CHECK_OK(arenite_arena_commit(arena));
    CHECK(resolve(arena, 0) == NULL);
    CHECK_EQ(committed(arena, ARENITE_ARENA_MAIN), 0);
    CHECK_OK(arenite_arena_release(arena));
    CHECK_OK(arenite_arena_destroy(arena));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

int main(void) {
    RUN(create_refuses);
    RUN(addresses_come_with_the_commit);
    RUN(br_28_a_callers_buffer_at_every_misalignment);
    RUN(br_26_every_size_of_a_callers_buffer);
    RUN(br_23_near_the_top_of_the_address_space);
    RUN(br_29_callbacks_that_fail);
    RUN(callbacks_that_miss_the_alignment);
    RUN(callbacks_that_call_back_find_the_arena_busy);
    RUN(br_44_release_and_generation);
    RUN(br_48_no_growth_by_doubling);
    RUN(constants_are_references);
    RUN(assign_fills_both_layouts);
    RUN(two_sources);
    RUN(an_arena_of_nothing);
    return DONE();
}
