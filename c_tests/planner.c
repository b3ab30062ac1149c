/* The planner: adding, aliasing, planning and checking buffers, with the figures of public bug reports. */
#include "helpers.h"

static const uint32_t every_strategy[] = {ARENITE_STRATEGY_AUTO, ARENITE_STRATEGY_FIRST_FIT,
                                          ARENITE_STRATEGY_GREEDY_BY_SIZE, ARENITE_STRATEGY_TFLM_GREEDY};

static void create_and_destroy(void) {
    arenite_planner_t *planner = NULL;
    arenite_planner_options_t o;
    arenite_failure_t f = no_failure();
    size_t i;
    CHECK_OK(arenite_planner_create(NULL, &planner, NULL));
    CHECK_EQ(planner_failure(planner).status, ARENITE_OK);
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_OK(arenite_planner_destroy(NULL));
    for (i = 0; i < COUNT(every_strategy); i++) {
        CHECK_OK(arenite_planner_destroy(new_planner(every_strategy[i])));
    }
    CHECK_STATUS(arenite_planner_create(NULL, NULL, &f), ARENITE_ERR_NULL);
    CHECK_EQ(f.status, ARENITE_ERR_NULL);

    /* BR-58: numbers that mean nothing. */
    planner = UNTOUCHED(arenite_planner_t);
    for (i = 0; i < 3; i++) {
        INIT(o);
        o.strategy = i == 0 ? 0xFFFFFFFFu : i == 1 ? 5 : 0;
        o.reserved = i == 2 ? 1 : 0;
        f = no_failure();
        CHECK_STATUS(arenite_planner_create(&o, &planner, &f), ARENITE_ERR_ARGUMENT);
        CHECK_EQ(f.status, ARENITE_ERR_ARGUMENT);
        CHECK_EQ(f.needed, i == 0 ? 0xFFFFFFFFu : i == 1 ? 5 : 1);
        CHECK(strlen(f.message) > 0);
        CHECK(planner == UNTOUCHED(arenite_planner_t));
    }
    memset(&o, 0, sizeof o);
    CHECK_STATUS(arenite_planner_create(&o, &planner, &f), ARENITE_ERR_ARGUMENT);
    CHECK(planner == UNTOUCHED(arenite_planner_t));
}

/* BR-51: a program that was compiled against another version of the struct. */
static void versioned_structs(void) {
    struct {
        arenite_planner_options_t now;
        uint32_t later[2];
    } longer;
    arenite_planner_t *planner = NULL;
    arenite_failure_t f;
    uint32_t size;
    memset(&longer, 0, sizeof longer);
    longer.now.struct_size = sizeof longer;
    longer.now.strategy = ARENITE_STRATEGY_FIRST_FIT;
    CHECK_OK(arenite_planner_create(&longer.now, &planner, NULL));
    CHECK_OK(arenite_planner_destroy(planner));
    planner = UNTOUCHED(arenite_planner_t);
    longer.later[1] = 1;
    f = no_failure();
    CHECK_STATUS(arenite_planner_create(&longer.now, &planner, &f), ARENITE_ERR_UNSUPPORTED);
    CHECK(f.needed >= sizeof longer.now && f.needed < sizeof longer);
    longer.later[1] = 0;
    longer.now.flags = 0x80000000u;
    CHECK_STATUS(arenite_planner_create(&longer.now, &planner, &f), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(f.needed, 0x80000000u);
    longer.now.flags = 0;
    for (size = 0; size < sizeof longer.now; size++) {
        longer.now.struct_size = size;
        CHECK_STATUS(arenite_planner_create(&longer.now, &planner, &f), ARENITE_ERR_ARGUMENT);
        CHECK_EQ(f.needed, size);
    }
    longer.now.struct_size = 0xFFFFFFFFu;
    CHECK_STATUS(arenite_planner_create(&longer.now, &planner, &f), ARENITE_ERR_ARGUMENT);
    CHECK(planner == UNTOUCHED(arenite_planner_t));

    /* The failure record is versioned too: one that is refused stays as it was, the status tells all the same. */
    f = no_failure();
    f.struct_size = 47;
    f.status = 99;
    longer.now.struct_size = 0;
    CHECK_STATUS(arenite_planner_create(&longer.now, &planner, &f), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(f.status, 99);
}

static void add_refuses(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_buffer_desc_t d = buffer(64, 0, 1);
    arenite_span_t spans[3] = {{0, 1}, {3, 4}, {4, 5}};
    uint32_t index = 77;
    CHECK_STATUS(arenite_planner_add(NULL, &d, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_add(planner, NULL, &index), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_add(planner, &d, NULL), ARENITE_ERR_NULL);

    d = buffer(64, 2, 1);
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).subject_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(planner_failure(planner).subject_index, 0);
    CHECK_EQ(planner_failure(planner).step, 2);

    d = buffer(64, 9, 1); /* not read where spans are given */
    d.spans = spans;
    d.span_count = 3; /* two share step 4 */
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).step, 4);
    spans[2].first = 2; /* out of order */
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ARGUMENT);
    d.spans = NULL;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_NULL);
    d.spans = spans;
    d.span_count = UINT64_MAX;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_OVERFLOW);
    d.span_count = UINT64_MAX / sizeof(arenite_span_t);
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_OVERFLOW);
    d.span_count = 1;
    d.spans = (const arenite_span_t *)(const void *)((const char *)spans + 1);
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ALIGNMENT);

    d = buffer(64, 0, 1);
    d.alignment = 3;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ALIGNMENT);
    CHECK_EQ(planner_failure(planner).needed, 3);
    d.alignment = 131072;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ALIGNMENT);
    d.alignment = 0xFFFFFFFFu;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ALIGNMENT);

    d = buffer(64, 0, 1);
    d.flags = 4;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ARGUMENT);
    d = buffer(64, 0, 1);
    d.reserved = 1;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ARGUMENT);
    memset(&d, 0, sizeof d);
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ARGUMENT);

    d = buffer(64, 0, 1);
    d.flags = ARENITE_BUFFER_FIXED;
    d.fixed_offset = 64; /* no multiple of 128 */
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_ALIGNMENT);
    d.fixed_offset = UINT64_MAX - 127;
    d.bytes = 129;
    CHECK_STATUS(arenite_planner_add(planner, &d, &index), ARENITE_ERR_OVERFLOW);

    CHECK_EQ(index, 77); /* never written */
    CHECK_EQ(add(planner, 64, 0, 1), 0); /* and nothing was added */
    CHECK_OK(arenite_planner_destroy(planner));
}

static void br_01_free_space_before_the_first_live_block(void) {
    size_t i;
    for (i = 0; i < COUNT(every_strategy); i++) {
        arenite_planner_t *planner = new_planner(every_strategy[i]);
        arenite_plan_t *plan;
        arenite_plan_info_t info;
        add(planner, 12800, 0, 1);
        add(planner, 10240, 1, 2);
        add(planner, 7680, 2, 3);
        plan = plan_of(planner);
        info = info_of(plan);
        CHECK_EQ(info.arena_bytes, 23040);
        CHECK_EQ(info.lower_bound, 23040);
        CHECK_EQ(info.total_bytes, 30720);
        CHECK_EQ(info.optimal, 1);
        CHECK_EQ(offset_of(plan, 0), 0);
        CHECK_EQ(offset_of(plan, 1), 12800);
        CHECK_EQ(offset_of(plan, 2), 0);
        CHECK_OK(arenite_plan_check(plan));
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_planner_destroy(planner));
    }
}

/* EXACT ends with a proof. */
static void exact_is_optimal(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_EXACT);
    arenite_plan_t *plan;
    add(planner, 12800, 0, 1);
    add(planner, 10240, 1, 2);
    add(planner, 7680, 2, 3);
    plan = plan_of(planner);
    CHECK_EQ(info_of(plan).arena_bytes, 23040);
    CHECK_EQ(info_of(plan).optimal, 1);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

typedef struct {
    arenite_planner_t *planner;
    int calls;
} search_t;

static uint32_t while_searching(void *user, const arenite_progress_t *progress) {
    search_t *s = (search_t *)user;
    const arenite_buffer_desc_t d = buffer(64, 0, 1);
    arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
    uint32_t index = 77;
    CHECK(progress->lower_bound <= progress->arena_bytes);
    CHECK_STATUS(arenite_planner_add(s->planner, &d, &index), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_planner_plan(s->planner, &plan), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_planner_clear(s->planner), ARENITE_ERR_BUSY);
    CHECK_STATUS(arenite_planner_destroy(s->planner), ARENITE_ERR_BUSY);
    CHECK(plan == UNTOUCHED(arenite_plan_t) && index == 77);
    return ++s->calls == 3; /* enough */
}

/* A callback that calls back finds the planner busy; one that says stop gets the best plan so far. */
static void progress_is_called_and_obeyed(void) {
    arenite_planner_options_t o;
    search_t s = {NULL, 0};
    arenite_plan_t *plan;
    uint32_t state = 5, i;
    INIT(o);
    o.strategy = ARENITE_STRATEGY_EXACT;
    o.progress = while_searching;
    o.user = &s;
    CHECK_OK(arenite_planner_create(&o, &s.planner, NULL));
    while (s.calls == 0 && state < 5 + 50) { /* until a problem needs a search */
        uint32_t seed = ++state;
        CHECK_OK(arenite_planner_clear(s.planner));
        for (i = 0; i < 100; i++) {
            const uint32_t first = next_random(&seed) % 60;
            arenite_buffer_desc_t d = buffer(1 + next_random(&seed) % 1000, first, first + next_random(&seed) % 25);
            uint32_t index;
            d.alignment = 1;
            CHECK_OK(arenite_planner_add(s.planner, &d, &index));
        }
        plan = plan_of(s.planner);
        CHECK_OK(arenite_plan_check(plan));
        CHECK_OK(arenite_plan_destroy(plan));
    }
    CHECK(s.calls > 0 && s.calls <= 3);
    CHECK_OK(arenite_planner_destroy(s.planner));
}

static void br_08_branch_results_outlive_the_branch(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan;
    add(planner, 512, 0, 5);
    add(planner, 1024, 1, 4);
    add(planner, 1024, 2, 2);
    add(planner, 1024, 3, 4);
    plan = plan_of(planner);
    CHECK_EQ(rounded_arena(plan), 2560);
    CHECK(disjoint(offset_of(plan, 1), 1024, offset_of(plan, 2), 1024));
    CHECK(disjoint(offset_of(plan, 1), 1024, offset_of(plan, 3), 1024));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

static void br_17_smaller_sizes_need_no_more(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan;
    uint64_t before;
    int shrunk;
    for (shrunk = 0; shrunk < 2; shrunk++) {
        CHECK_OK(arenite_planner_clear(planner));
        add(planner, 512, 3, 4);
        add(planner, shrunk ? 384 : 512, 2, 3);
        add(planner, 640, 1, 1);
        add(planner, 512, 1, 2);
        plan = plan_of(planner);
        before = rounded_arena(plan);
        CHECK_EQ(before <= 1152, 1);
        CHECK_OK(arenite_plan_destroy(plan));
    }
    CHECK_OK(arenite_planner_destroy(planner));
}

static void br_19_fixed_offsets(void) {
    size_t i;
    for (i = 0; i < COUNT(every_strategy); i++) {
        arenite_planner_t *planner = new_planner(every_strategy[i]);
        arenite_plan_t *plan;
        arenite_buffer_desc_t d = buffer(1024, 0, 1);
        uint32_t index;
        d.flags = ARENITE_BUFFER_FIXED;
        d.fixed_offset = 1024;
        CHECK_OK(arenite_planner_add(planner, &d, &index));
        add(planner, 1024, 0, 1);
        add(planner, 512, 1, 1);
        plan = plan_of(planner);
        CHECK_EQ(offset_of(plan, 0), 1024);
        CHECK_EQ(info_of(plan).arena_bytes, 2560);
        CHECK_OK(arenite_plan_check(plan));
        CHECK_OK(arenite_plan_destroy(plan));

        /* A second one on the same bytes: both are named. */
        d.fixed_offset = 1920;
        CHECK_OK(arenite_planner_add(planner, &d, &index));
        plan = UNTOUCHED(arenite_plan_t);
        CHECK_STATUS(arenite_planner_plan(planner, &plan), ARENITE_ERR_ARGUMENT);
        CHECK(plan == UNTOUCHED(arenite_plan_t));
        CHECK_EQ(planner_failure(planner).subject_kind, ARENITE_SUBJECT_BUFFER);
        CHECK_EQ(planner_failure(planner).other_kind, ARENITE_SUBJECT_BUFFER);
        CHECK_EQ(planner_failure(planner).subject_index + planner_failure(planner).other_index, 3);
        CHECK_OK(arenite_planner_destroy(planner));
    }
}

static void spans_with_gaps(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_span_t spans[2] = {{0, 1}, {4, 5}};
    arenite_buffer_desc_t d = buffer(1000, 0, 0);
    arenite_plan_t *plan;
    uint32_t index;
    d.spans = spans;
    d.span_count = 2;
    CHECK_OK(arenite_planner_add(planner, &d, &index));
    add(planner, 1000, 2, 3); /* fits the gap */
    plan = plan_of(planner);
    CHECK_EQ(info_of(plan).arena_bytes, 1000);
    CHECK_EQ(info_of(plan).total_bytes, 2000);
    CHECK_OK(arenite_plan_destroy(plan));
    add(planner, 1000, 3, 4); /* meets both */
    plan = plan_of(planner);
    CHECK_EQ(round_up(info_of(plan).arena_bytes, 128), 2048);
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
}

static void alignments_and_empty_buffers(void) {
    size_t i;
    for (i = 0; i < COUNT(every_strategy); i++) {
        arenite_planner_t *planner = new_planner(every_strategy[i]);
        arenite_buffer_desc_t d = buffer(100, 0, 3);
        arenite_plan_t *plan;
        arenite_plan_info_t info;
        uint32_t index, alignment;
        for (alignment = 1; alignment <= 65536; alignment *= 2) {
            d.alignment = alignment;
            CHECK_OK(arenite_planner_add(planner, &d, &index));
        }
        add(planner, 0, 0, 3);
        plan = plan_of(planner);
        info = info_of(plan);
        CHECK_EQ(info.alignment, 65536);
        CHECK_EQ(info.buffer_count, 17);
        CHECK_EQ(info.total_bytes, 1700);
        for (index = 0; index < 17; index++) {
            CHECK_EQ(offset_of(plan, index) % (1u << index), 0);
        }
        CHECK_EQ(offset_of(plan, 17), 0);
        CHECK_OK(arenite_plan_check(plan));
        CHECK_OK(arenite_plan_destroy(plan));
        CHECK_OK(arenite_planner_destroy(planner));
    }
}

/* BR-21, BR-24: sizes that do not fit 64 bits are refused, those that do are exact. */
static void sizes_near_the_limit(void) {
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 127, UINT64_MAX / 2 + 1};
    size_t i, k;
    for (i = 0; i < COUNT(every_strategy); i++) {
        arenite_planner_t *planner = new_planner(every_strategy[i]);
        arenite_plan_t *plan;
        add(planner, 17179869184u, 0, 1); /* {65536, 65536} of 4 bytes */
        plan = plan_of(planner);
        CHECK_EQ(info_of(plan).arena_bytes, 17179869184u);
        CHECK_OK(arenite_plan_destroy(plan));
        for (k = 0; k < COUNT(huge); k++) {
            uint32_t index = 77;
            arenite_buffer_desc_t d = buffer(huge[k], 0, 1);
            arenite_status_t added;
            CHECK_OK(arenite_planner_clear(planner));
            added = arenite_planner_add(planner, &d, &index);
            CHECK(added == ARENITE_OK || added == ARENITE_ERR_OVERFLOW);
            if (added == ARENITE_OK) {
                CHECK_OK(arenite_planner_add(planner, &d, &index)); /* twice is too much */
                plan = UNTOUCHED(arenite_plan_t);
                CHECK_STATUS(arenite_planner_plan(planner, &plan), ARENITE_ERR_OVERFLOW);
                CHECK(plan == UNTOUCHED(arenite_plan_t));
            }
        }
        CHECK_OK(arenite_planner_destroy(planner));
    }
}

static void aliases(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_plan_t *plan;
    arenite_failure_t f;
    add(planner, 1024, 0, 1);
    add(planner, 512, 1, 3); /* a view of the second half of 0 */
    add(planner, 1024, 2, 3);
    CHECK_OK(arenite_planner_alias(planner, 1, 0, 512));
    plan = plan_of(planner);
    CHECK_EQ(offset_of(plan, 1), offset_of(plan, 0) + 512);
    CHECK(disjoint(offset_of(plan, 0), 1024, offset_of(plan, 2), 1024)); /* the class is one block */
    CHECK_EQ(info_of(plan).arena_bytes, 2048);
    CHECK_OK(arenite_plan_check(plan));
    CHECK_OK(arenite_plan_destroy(plan));

    CHECK_STATUS(arenite_planner_alias(NULL, 1, 0, 0), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_alias(planner, 9, 0, 0), ARENITE_ERR_ARGUMENT);
    f = planner_failure(planner);
    CHECK_EQ(f.subject_index, 9);
    CHECK_STATUS(arenite_planner_alias(planner, 0, 0xFFFFFFFFu, 0), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_alias(planner, 2, 2, 0), ARENITE_ERR_ARGUMENT); /* itself */
    f = planner_failure(planner);
    CHECK_EQ(f.subject_index, 2);
    CHECK_EQ(f.other_index, 2);
    CHECK_STATUS(arenite_planner_alias(planner, 1, 2, 0), ARENITE_ERR_ARGUMENT); /* an alias already */
    CHECK_STATUS(arenite_planner_alias(planner, 0, 2, 0), ARENITE_ERR_ARGUMENT); /* a root */
    CHECK_STATUS(arenite_planner_alias(planner, 2, 0, 1), ARENITE_ERR_ARGUMENT); /* breaks its alignment */
    CHECK_STATUS(arenite_planner_alias(planner, 2, 0, UINT64_MAX - 127), ARENITE_ERR_OVERFLOW);
    CHECK_OK(arenite_planner_destroy(planner));
}

static void check_names_the_pair(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    uint64_t offsets[3] = {0, 128, 0};
    uint64_t bytes = 77;
    arenite_failure_t f;
    add(planner, 100, 0, 2);
    add(planner, 100, 1, 3);
    add(planner, 200, 3, 4);
    CHECK_STATUS(arenite_planner_check(planner, offsets, 3, &bytes), ARENITE_ERR_ARGUMENT);
    f = planner_failure(planner);
    CHECK_EQ(f.subject_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(f.other_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(f.subject_index + f.other_index, 3); /* 1 and 2 */
    CHECK_EQ(f.step, 3);
    CHECK_EQ(f.needed, 128); /* the first byte both hold */
    CHECK_EQ(bytes, 77);
    offsets[2] = 256;
    CHECK_OK(arenite_planner_check(planner, offsets, 3, &bytes));
    CHECK_EQ(bytes, 456);
    bytes = 77;
    offsets[0] = 64;
    CHECK_STATUS(arenite_planner_check(planner, offsets, 3, &bytes), ARENITE_ERR_ALIGNMENT);
    CHECK_EQ(planner_failure(planner).subject_index, 0);
    offsets[0] = UINT64_MAX - 127;
    offsets[2] = UINT64_MAX - 127;
    CHECK_STATUS(arenite_planner_check(planner, offsets, 3, &bytes), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_planner_check(planner, offsets, 2, &bytes), ARENITE_ERR_ARGUMENT);
    f = planner_failure(planner);
    CHECK_EQ(f.needed, 3);
    CHECK_EQ(f.available, 2);
    CHECK_STATUS(arenite_planner_check(planner, NULL, 3, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_check(planner, offsets, UINT64_MAX, &bytes), ARENITE_ERR_OVERFLOW);
    CHECK_STATUS(arenite_planner_check(planner, offsets, 3, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_check(NULL, offsets, 3, &bytes), ARENITE_ERR_NULL);
    CHECK_EQ(bytes, 77);
    CHECK_OK(arenite_planner_destroy(planner));
}

static void a_planner_is_used_again_and_outlived(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_FIRST_FIT);
    arenite_plan_t *first, *second, *empty;
    add(planner, 100, 0, 1);
    first = plan_of(planner);
    add(planner, 100, 1, 2);
    second = plan_of(planner);
    CHECK_OK(arenite_planner_clear(planner));
    empty = plan_of(planner);
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_EQ(info_of(first).arena_bytes, 100);
    CHECK_EQ(info_of(second).arena_bytes, 228);
    CHECK_EQ(info_of(second).strategy, ARENITE_STRATEGY_FIRST_FIT);
    CHECK_EQ(info_of(empty).arena_bytes, 0);
    CHECK_EQ(info_of(empty).buffer_count, 0);
    CHECK_EQ(info_of(empty).optimal, 1);
    CHECK_OK(arenite_plan_destroy(first));
    CHECK_OK(arenite_plan_destroy(second));
    CHECK_OK(arenite_plan_destroy(empty));
}

/* BR-57 in part: handles of another type are refused, not followed. */
static void other_handles_are_refused(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_graph_t *graph = new_graph();
    arenite_plan_t *plan = UNTOUCHED(arenite_plan_t);
    arenite_failure_t f = no_failure();
    void *wrong = graph;
    CHECK_STATUS(arenite_planner_clear((arenite_planner_t *)wrong), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_last_failure((const arenite_planner_t *)wrong, &f), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_destroy((arenite_planner_t *)wrong), ARENITE_ERR_ARGUMENT);
    wrong = planner;
    CHECK_STATUS(arenite_planner_plan_graph(planner, (const arenite_graph_t *)wrong, NULL, &plan), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_plan_graph(planner, NULL, NULL, &plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan_graph(planner, graph, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan_graph(NULL, graph, NULL, &plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan(planner, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_plan(NULL, &plan), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_clear(NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_last_failure(NULL, &f), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_planner_last_failure(planner, NULL), ARENITE_ERR_NULL);
    CHECK(plan == UNTOUCHED(arenite_plan_t));
    CHECK_OK(arenite_graph_destroy(graph));
    CHECK_OK(arenite_planner_destroy(planner));
}

/* Every strategy is valid on every problem, and AUTO is never above the others. */
static void random_problems(void) {
    uint32_t state = 2463534242u, round;
    for (round = 0; round < 60; round++) {
        uint32_t n = 2 + next_random(&state) % 30, seed = state, i;
        uint64_t best = UINT64_MAX, automatic = 0;
        size_t k;
        for (k = COUNT(every_strategy); k-- > 0;) { /* AUTO last */
            arenite_planner_t *planner = new_planner(every_strategy[k]);
            uint64_t offsets[32], bytes = 0;
            arenite_plan_t *plan;
            arenite_plan_info_t info;
            state = seed;
            for (i = 0; i < n; i++) {
                const uint32_t first = next_random(&state) % 20;
                add(planner, next_random(&state) % 4000, first, first + next_random(&state) % 6);
            }
            plan = plan_of(planner);
            info = info_of(plan);
            for (i = 0; i < n; i++) {
                offsets[i] = offset_of(plan, i);
            }
            CHECK_OK(arenite_planner_check(planner, offsets, n, &bytes));
            CHECK_EQ(bytes, info.arena_bytes);
            CHECK(info.lower_bound <= info.arena_bytes && info.arena_bytes <= round_up(info.total_bytes, 128) + n * 128);
            if (every_strategy[k] == ARENITE_STRATEGY_AUTO) {
                automatic = round_up(info.arena_bytes, 128);
            } else {
                CHECK_EQ(info.strategy, every_strategy[k]);
                best = round_up(info.arena_bytes, 128) < best ? round_up(info.arena_bytes, 128) : best;
            }
            CHECK_OK(arenite_plan_destroy(plan));
            CHECK_OK(arenite_planner_destroy(planner));
        }
        CHECK(automatic <= best);
    }
}

int main(void) {
    RUN(create_and_destroy);
    RUN(versioned_structs);
    RUN(add_refuses);
    RUN(br_01_free_space_before_the_first_live_block);
    RUN(exact_is_optimal);
    RUN(progress_is_called_and_obeyed);
    RUN(br_08_branch_results_outlive_the_branch);
    RUN(br_17_smaller_sizes_need_no_more);
    RUN(br_19_fixed_offsets);
    RUN(spans_with_gaps);
    RUN(alignments_and_empty_buffers);
    RUN(sizes_near_the_limit);
    RUN(aliases);
    RUN(check_names_the_pair);
    RUN(a_planner_is_used_again_and_outlived);
    RUN(other_handles_are_refused);
    RUN(random_problems);
    return DONE();
}
