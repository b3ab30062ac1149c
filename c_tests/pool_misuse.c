/* The misuse grid over every function of the pool, the frame, the lease, the table and the heap over offsets. */
#include "pool_helpers.h"
#include <errno.h>

#define NONSENSE 0xFFFFFFFFu

static const size_t no_alignments[] = {3, 12, 127, 129, SIZE_MAX, SIZE_MAX - 127};

/* Every block, live or free, in a few bytes. */
static void mix(void *user, void *data, size_t bytes, size_t requested, uint32_t live) {
    uint64_t *hash = (uint64_t *)user;
    *hash = (*hash ^ (uintptr_t)data) * 0x100000001B3u;
    *hash = (*hash ^ bytes) * 0x100000001B3u;
    *hash = (*hash ^ requested ^ ((uint64_t)live << 63)) * 0x100000001B3u;
}

static uint64_t shape(const arenite_pool_t *pool) {
    arenite_pool_stats_t s = stats(pool);
    uint64_t hash = 7;
    CHECK_OK(arenite_pool_walk(pool, mix, &hash));
    CHECK_OK(arenite_pool_check(pool, NULL));
    return hash ^ s.live_bytes ^ (s.requested_bytes << 20) ^ (s.reserved_bytes << 40);
}

static void write_nothing(void *user, const uint8_t *text, size_t bytes) {
    (void)user;
    (void)text;
    (void)bytes;
}

static void null_pools_are_refused(void) {
    arenite_pool_t *no = NULL;
    arenite_frame_t *frame = NULL;
    arenite_lease_t *lease = NULL;
    arenite_frame_stats_t frames;
    arenite_pool_stats_t stats;
    arenite_allocator_t table;
    arenite_failure_t f = no_failure();
    void *p = NULL;
    size_t bytes = 1;
    uint64_t given = 1;
    uint32_t owns = 1;
    char buffer[4096];
    memset(&frames, 0, sizeof frames);
    frames.struct_size = sizeof frames;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    CHECK_STATUS(arenite_pool_lend(no, buffer, sizeof buffer, &f), ARENITE_ERR_NULL);
    CHECK_EQ(f.status, ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc(no, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc_zeroed(no, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc_hint(no, 1, 0, 0, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_realloc(no, NULL, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_realloc_zeroed(no, NULL, 1, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_free(no, buffer, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_free_sized(no, buffer, 1, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_usable_size(no, buffer, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_good_size(no, 1, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_owns(no, buffer, &owns), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trim(no, 0, &given), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_stats(no, &stats), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_check(no, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_walk(no, mix, &given), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_leaks(no, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_set_tag(no, buffer, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_allocator(no, &table), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_to_file(no, "x", NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_to(no, write_nothing, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_stop(no), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_begin(no, 1, &frame, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_save(no, 1, buffer, sizeof buffer, &bytes), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_load(no, 1, buffer, sizeof buffer, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_plan(no, 1, NULL, 0, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_stats(no, &frames), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_alloc(NULL, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_realloc(NULL, buffer, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_free(NULL, buffer, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_create(no, 1, 0, 1, &lease, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_acquire(NULL, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_return(NULL, buffer), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_trim(NULL, 0), ARENITE_ERR_NULL);
    CHECK(p == NULL && frame == NULL && lease == NULL && bytes == 1 && given == 1 && owns == 1);
    CHECK_OK(arenite_pool_destroy(NULL, NULL));
    CHECK_OK(arenite_frame_end(NULL));
    CHECK_OK(arenite_lease_destroy(NULL));
}

static void null_outputs_are_refused_and_leak_nothing(void) {
    arenite_pool_t *pool = fixed(1 << 16);
    arenite_frame_t *frame = NULL;
    arenite_lease_t *lease = NULL;
    uint64_t before;
    void *p = NULL;
    CHECK_OK(arenite_pool_alloc(pool, 1000, 0, &p, NULL));
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    CHECK_OK(arenite_lease_create(pool, 1000, 0, 1, &lease, NULL));
    before = shape(pool);
    CHECK_STATUS(arenite_pool_create(NULL, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc(pool, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc_zeroed(pool, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_alloc_hint(pool, 1, 0, 0, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_realloc(pool, p, 10000, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_realloc_zeroed(pool, p, 10000, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_usable_size(pool, p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_owns(pool, p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_good_size(pool, 1, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_stats(pool, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_walk(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_leaks(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_set_tag(pool, NULL, 1), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_usable_size(pool, NULL, (size_t *)p), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_allocator(pool, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_lend(pool, NULL, 4096, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_to_file(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_to_file(pool, "/", NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_trace_to(pool, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_pool_trace_stop(pool), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_begin(pool, 1, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_alloc(frame, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_realloc(frame, p, 10000, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_realloc(frame, NULL, 1, 0, &p, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_save(pool, 1, NULL, 1, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_load(pool, 1, NULL, 1, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_plan(pool, 1, NULL, 1, 0, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_frame_stats(pool, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_create(pool, 1, 0, 1, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_acquire(lease, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_return(lease, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_lease_stats(lease, NULL), ARENITE_ERR_NULL);
    CHECK_OK(arenite_pool_free(pool, NULL, NULL));
    CHECK_OK(arenite_frame_free(frame, NULL, NULL));
    CHECK_OK(arenite_pool_trim(pool, 0, NULL));
    CHECK_EQ(shape(pool), before);
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_lease_destroy(lease));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

/* One impossible size in every function that takes one. */
static void no_such_size(arenite_pool_t *pool, arenite_frame_t *frame, const arenite_allocator_t *t, void *p, size_t size) {
    void *out = &size;
    size_t good = 77;
    CHECK_STATUS(arenite_pool_alloc(pool, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_alloc(pool, size, 65536, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_alloc_zeroed(pool, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_alloc_hint(pool, size, 0, 0, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_alloc_hint(pool, 1, 0, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_alloc_hint(pool, size, 0, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_realloc(pool, p, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_realloc(pool, p, size, size, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_realloc_zeroed(pool, p, size, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_free_sized(pool, p, size, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_alloc(frame, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_frame_realloc(frame, p, size, 0, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK(out == &size);
    if (size > SIZE_MAX - 127) {
        CHECK_STATUS(arenite_pool_good_size(pool, size, &good), ARENITE_ERR_OVERFLOW);
        CHECK_EQ(good, 77);
    }
    errno = 0;
    CHECK(t->malloc(t->context, size) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(t->calloc(t->context, size, 1) == NULL);
    CHECK(t->calloc(t->context, 16, size / 8) == NULL);
    CHECK(t->realloc(t->context, p, size) == NULL);
    CHECK(t->aligned_alloc(t->context, 128, size) == NULL);
    CHECK_EQ(t->posix_memalign(t->context, &out, 128, size), ENOMEM);
    CHECK(out == &size);
}

static void sizes_that_cannot_be_are_refused_everywhere(void) {
    arenite_pool_t *pool = fixed(1 << 16);
    arenite_frame_t *frame = NULL;
    arenite_lease_t *lease = NULL;
    arenite_allocator_t table;
    arenite_failure_t f = no_failure();
    uint64_t before;
    void *p = NULL, *out = NULL;
    char buffer[256];
    size_t k;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    CHECK_OK(arenite_pool_allocator(pool, &table));
    CHECK_OK(arenite_pool_alloc(pool, 1000, 0, &p, NULL));
    memset(p, 0x5A, 1000);
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    before = shape(pool);
    for (k = 0; k < 4096; k++) {
        no_such_size(pool, frame, &table, p, SIZE_MAX - k);
    }
    for (k = 0; k < 130; k++) {
        no_such_size(pool, frame, &table, p, (SIZE_MAX >> 1) - 64 + k);
    }
    no_such_size(pool, frame, &table, p, (1 << 16) + 1);
    CHECK_STATUS(arenite_pool_alloc(pool, (1 << 16) - 1023, 0, &out, &f), ARENITE_ERR_CAPACITY);
    CHECK_EQ(f.needed, (1 << 16) - 1023);
    CHECK_EQ(f.available, (1 << 16) - 1024);
    CHECK_EQ(shape(pool), before);
    for (k = 0; k < 1000; k++) {
        CHECK(((unsigned char *)p)[k] == 0x5A);
    }
    /* A buffer that no address space holds. */
    for (k = 0; k < 4096; k += 61) {
        CHECK_STATUS(arenite_pool_lend(pool, buffer, SIZE_MAX - k, NULL), ARENITE_ERR_ARGUMENT);
        CHECK_STATUS(arenite_pool_lend(pool, buffer, (SIZE_MAX >> 1) + 1 + k, NULL), ARENITE_ERR_ARGUMENT);
        CHECK_OK(arenite_lease_create(pool, SIZE_MAX - k, 0, 1, &lease, NULL));
        CHECK_STATUS(arenite_lease_acquire(lease, 0, &out, NULL), ARENITE_ERR_CAPACITY);
        CHECK_STATUS(arenite_lease_acquire(lease, 1, &out, NULL), ARENITE_ERR_CAPACITY);
        CHECK_OK(arenite_lease_destroy(lease));
        lease = NULL;
    }
    CHECK_STATUS(arenite_pool_lend(pool, buffer, 0, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_pool_lend(pool, buffer, 1, NULL), ARENITE_ERR_CAPACITY);
    CHECK_EQ(shape(pool), before);
    /* 0 and 1 are sizes. */
    for (k = 0; k < 2; k++) {
        void *zero[4] = {NULL, NULL, NULL, NULL};
        CHECK_OK(arenite_pool_alloc(pool, k, 0, &zero[0], NULL));
        CHECK_OK(arenite_pool_alloc_zeroed(pool, k, 0, &zero[1], NULL));
        CHECK_OK(arenite_frame_alloc(frame, k, 0, &zero[2], NULL));
        zero[3] = table.malloc(table.context, k);
        CHECK(zero[0] != zero[1] && zero[1] != zero[2] && zero[2] != zero[3] && zero[3] != NULL);
        CHECK_OK(arenite_pool_realloc(pool, zero[0], k, 0, &zero[0], NULL));
        CHECK_OK(arenite_pool_free_sized(pool, zero[0], k, NULL));
        CHECK_OK(arenite_pool_free(pool, zero[1], NULL));
        CHECK_OK(arenite_frame_free(frame, zero[2], NULL));
        table.free(table.context, zero[3]);
    }
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

/* The same from a pool that could grow: the source is never asked for what wraps. */
static void a_growing_pool_refuses_them_too(void) {
    arenite_pool_options_t o = options();
    uint32_t growth;
    for (growth = ARENITE_GROWTH_DEFAULT; growth <= ARENITE_GROWTH_GEOMETRIC; growth++) {
        arenite_pool_t *pool = NULL;
        void *out = NULL;
        size_t k;
        o.growth = growth;
        o.growth_bytes = growth == ARENITE_GROWTH_GEOMETRIC ? SIZE_MAX : 0;
        CHECK_OK(arenite_pool_create(&o, &pool, NULL));
        for (k = 0; k < 4096; k += growth == ARENITE_GROWTH_GEOMETRIC ? 512 : 1) {
            CHECK(arenite_pool_alloc(pool, SIZE_MAX - k, 0, &out, NULL) != ARENITE_OK);
            CHECK(arenite_pool_alloc(pool, (SIZE_MAX >> 1) - k, 4096, &out, NULL) != ARENITE_OK);
        }
        CHECK(out == NULL);
        CHECK_EQ(shape(pool), shape(pool));
        CHECK_OK(arenite_pool_destroy(pool, NULL));
    }
    o = options();
    o.first_region = SIZE_MAX;
    {
        arenite_pool_t *pool = NULL;
        CHECK(arenite_pool_create(&o, &pool, NULL) != ARENITE_OK);
        o.first_region = 0;
        o.max_blocks = SIZE_MAX;
        o.quarantine_bytes = SIZE_MAX;
        o.tail_bytes = 0xFFFFFFFFu;
        o.tail = ARENITE_TAIL_EXCLUSIVE;
        CHECK_STATUS(arenite_pool_create(&o, &pool, NULL), ARENITE_ERR_ARGUMENT);
        CHECK(pool == NULL);
    }
}

static void alignments_that_are_none_are_refused(void) {
    arenite_pool_t *pool = fixed(1 << 16);
    arenite_frame_t *frame = NULL;
    arenite_lease_t *lease = NULL;
    arenite_allocator_t table;
    uint64_t before;
    void *p = NULL, *out = NULL;
    size_t i;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    CHECK_OK(arenite_pool_allocator(pool, &table));
    CHECK_OK(arenite_pool_alloc(pool, 1000, 0, &p, NULL));
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    before = shape(pool);
    for (i = 0; i < sizeof no_alignments / sizeof *no_alignments; i++) {
        size_t a = no_alignments[i];
        CHECK_STATUS(arenite_pool_alloc(pool, 1, a, &out, NULL), ARENITE_ERR_ALIGNMENT);
        CHECK_STATUS(arenite_pool_alloc_zeroed(pool, 1, a, &out, NULL), ARENITE_ERR_ALIGNMENT);
        CHECK_STATUS(arenite_pool_alloc_hint(pool, 1, a, 0, 0, &out, NULL), ARENITE_ERR_ALIGNMENT);
        CHECK_STATUS(arenite_frame_alloc(frame, 1, a, &out, NULL), ARENITE_ERR_ALIGNMENT);
        CHECK_STATUS(arenite_frame_realloc(frame, p, 5000, a, &out, NULL), ARENITE_ERR_ALIGNMENT);
        CHECK_STATUS(arenite_lease_create(pool, 1, a, 1, &lease, NULL), ARENITE_ERR_ALIGNMENT);
        errno = 0;
        CHECK(table.aligned_alloc(table.context, a, 1) == NULL);
        CHECK_EQ(errno, EINVAL);
        CHECK_EQ(table.posix_memalign(table.context, &out, a, 1), EINVAL);
    }
    /* The largest power of two is an alignment that no region meets. */
    CHECK_STATUS(arenite_pool_alloc(pool, 1, (SIZE_MAX >> 1) + 1, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_frame_alloc(frame, 1, (SIZE_MAX >> 1) + 1, &out, NULL), ARENITE_ERR_CAPACITY);
    CHECK_EQ(table.posix_memalign(table.context, &out, 1, 1), EINVAL);
    CHECK_EQ(table.posix_memalign(table.context, &out, 0, 1), EINVAL);
    CHECK_EQ(table.posix_memalign(table.context, NULL, 128, 1), EINVAL);
    CHECK(out == NULL && lease == NULL);
    CHECK_EQ(shape(pool), before);
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void numbers_and_bits_that_mean_nothing_are_refused(void) {
    static const uint32_t wrong[] = {4, 5, 77, 0x7FFFFFFFu, 0x80000000u, NONSENSE};
    arenite_pool_t *pool = fixed(1 << 16), *out = NULL;
    arenite_heap_options_t h;
    arenite_heap_t *heap = NULL;
    uint64_t before = shape(pool);
    void *p = NULL;
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        arenite_pool_options_t o = options();
        o.growth = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.fallback = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.tail = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.source.kind = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.source.reserved = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.reserved = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.shards = wrong[i] + 61;
        if (o.shards > 64) {
            CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        }
        o = options();
        o.flags = wrong[i] | 0x40000000u;
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        o = options();
        o.struct_size = wrong[i];
        CHECK_STATUS(arenite_pool_create(&o, &out, NULL), ARENITE_ERR_ARGUMENT);
        CHECK_STATUS(arenite_pool_alloc_hint(pool, 1, 0, 0, wrong[i] | 5, &p, NULL), ARENITE_ERR_ARGUMENT);
        memset(&h, 0, sizeof h);
        h.struct_size = sizeof h;
        h.bytes = 1 << 20;
        h.flags = wrong[i] << 1;
        CHECK_STATUS(h.flags != 0 ? arenite_heap_create(&h, &heap, NULL) : ARENITE_ERR_ARGUMENT, ARENITE_ERR_ARGUMENT);
    }
    CHECK(out == NULL && p == NULL && heap == NULL);
    CHECK_EQ(shape(pool), before);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void structs_filled_with(int byte) {
    arenite_pool_t *pool = fixed(1 << 16), *made = NULL;
    arenite_heap_t *heap = NULL;
    arenite_lease_t *lease = NULL;
    arenite_pool_options_t o;
    arenite_pool_stats_t s;
    arenite_frame_stats_t fs;
    arenite_lease_stats_t ls;
    arenite_heap_options_t h;
    arenite_allocator_t table;
    arenite_failure_t f;
    arenite_frame_request_t request;
    arenite_heap_block_t block;
    uint64_t before = shape(pool);
    void *p = NULL;
    memset(&o, byte, sizeof o);
    memset(&s, byte, sizeof s);
    memset(&fs, byte, sizeof fs);
    memset(&ls, byte, sizeof ls);
    memset(&h, byte, sizeof h);
    memset(&table, byte, sizeof table);
    memset(&f, byte, sizeof f);
    memset(&request, byte, sizeof request);
    memset(&block, byte, sizeof block);
    CHECK_OK(arenite_lease_create(pool, 100, 0, 1, &lease, NULL));
    CHECK_STATUS(arenite_pool_create(&o, &made, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_stats(pool, &s), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_stats(pool, &fs), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_lease_stats(lease, &ls), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_allocator(pool, &table), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_create(&h, &heap, NULL), ARENITE_ERR_ARGUMENT);
    /* A record that cannot be filled in does not hide the status. */
    CHECK_STATUS(arenite_pool_alloc(pool, 1, 3, &p, &f), ARENITE_ERR_ALIGNMENT);
    CHECK_STATUS(arenite_pool_free(pool, &f, &f), ARENITE_ERR_ARGUMENT);
    if (byte != 0) {
        CHECK(arenite_frame_plan(pool, 1, &request, 1, 0, NULL) != ARENITE_OK);
    }
    h.struct_size = sizeof h;
    h.flags = 0;
    if (byte != 0) {
        CHECK(arenite_heap_create(&h, &heap, NULL) != ARENITE_OK);
    }
    memset(&h, 0, sizeof h);
    h.struct_size = sizeof h;
    h.bytes = 1 << 16;
    CHECK_OK(arenite_heap_create(&h, &heap, NULL));
    CHECK_STATUS(arenite_heap_free(heap, block, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_resize(heap, block, 1, 0, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_size(heap, block, NULL, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_heap_destroy(heap, NULL));
    CHECK_OK(arenite_lease_destroy(lease));
    CHECK(made == NULL && p == NULL);
    CHECK_EQ(shape(pool), before);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void structs_of_zeros_and_ones_are_refused(void) {
    structs_filled_with(0);
    structs_filled_with(0xFF);
    structs_filled_with(0x80);
}

static void handles_of_another_type_are_refused(void) {
    arenite_pool_t *pool = fixed(1 << 16);
    arenite_frame_t *frame = NULL;
    arenite_lease_t *lease = NULL;
    void *p = NULL;
    uint64_t before;
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    CHECK_OK(arenite_lease_create(pool, 100, 0, 1, &lease, NULL));
    before = shape(pool);
    CHECK_STATUS(arenite_pool_alloc((const arenite_pool_t *)(const void *)frame, 1, 0, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_free((const arenite_pool_t *)(const void *)lease, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_alloc((const arenite_frame_t *)(const void *)pool, 1, 0, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_lease_acquire((const arenite_lease_t *)(const void *)pool, 0, &p, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_check((const arenite_heap_t *)(const void *)pool, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_destroy((arenite_pool_t *)(void *)frame, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_frame_end((arenite_frame_t *)(void *)pool), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_lease_destroy((arenite_lease_t *)(void *)pool), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_destroy((arenite_heap_t *)(void *)pool, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(shape(pool), before);
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_lease_destroy(lease));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

static void regions_misaligned_overlapping_or_too_many(void) {
    static char buffer[1 << 16];
    arenite_pool_options_t o = options();
    arenite_pool_t *pool = NULL;
    uint64_t before;
    size_t i;
    o.source.kind = ARENITE_SOURCE_BUFFER;
    o.source.base = buffer + 1;
    o.source.bytes = 8191;
    CHECK_OK(arenite_pool_create(&o, &pool, NULL));
    before = shape(pool);
    CHECK_STATUS(arenite_pool_lend(pool, buffer, 4096, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_lend(pool, buffer + 1, 8191, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_lend(pool, buffer + 4000, 128, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_lend(pool, buffer + 8000, 8192, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_pool_lend(pool, buffer + 8193, 127, NULL), ARENITE_ERR_CAPACITY);
    CHECK_EQ(shape(pool), before);
    for (i = 1; i < 64; i++) {
        CHECK_OK(arenite_pool_lend(pool, buffer + 8192 + i * 512, 512 - i, NULL));
    }
    before = shape(pool);
    CHECK_STATUS(arenite_pool_lend(pool, buffer + 60000, 512, NULL), ARENITE_ERR_CAPACITY);
    CHECK_EQ(shape(pool), before);
    CHECK_OK(arenite_pool_destroy(pool, NULL));
}

/* A pool over the same buffer again: nothing of the one before is left. */
static void a_buffer_can_be_used_again_and_again(void) {
    static char buffer[1 << 14];
    uint32_t round;
    for (round = 0; round < 50; round++) {
        arenite_pool_options_t o = options();
        arenite_pool_t *pool = NULL;
        void *p = NULL, *q = NULL;
        memset(buffer, (int)round * 37 & 0xFF, sizeof buffer);
        o.source.kind = ARENITE_SOURCE_BUFFER;
        o.source.base = buffer;
        o.source.bytes = sizeof buffer;
        CHECK_OK(arenite_pool_create(&o, &pool, NULL));
        CHECK_OK(arenite_pool_alloc(pool, 1000, 0, &p, NULL));
        CHECK_OK(arenite_pool_alloc(pool, 10000, 0, &q, NULL));
        CHECK_STATUS(arenite_pool_destroy(pool, NULL), ARENITE_ERR_BUSY);
        CHECK_OK(arenite_pool_free(pool, p, NULL));
        CHECK_OK(arenite_pool_free(pool, q, NULL));
        CHECK_OK(arenite_pool_destroy(pool, NULL));
    }
}

/* What outlives the pool it came from keeps it alive, so that nothing dangles. */
static void frames_leases_and_fallbacks_outlive_the_handle(void) {
    arenite_pool_t *pool = fixed(1 << 16), *user = NULL;
    arenite_pool_options_t o = options();
    arenite_lease_t *lease = NULL;
    arenite_frame_t *frame = NULL;
    void *p = NULL;
    CHECK_OK(arenite_frame_begin(pool, 1, &frame, NULL));
    CHECK_STATUS(arenite_pool_destroy(pool, NULL), ARENITE_ERR_BUSY);
    CHECK_OK(arenite_frame_end(frame));
    CHECK_OK(arenite_lease_create(pool, 1000, 0, 1, &lease, NULL));
    o.growth = ARENITE_GROWTH_NONE;
    o.fallback = ARENITE_FALLBACK_POOL;
    o.fallback_pool = pool;
    CHECK_OK(arenite_pool_create(&o, &user, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
    CHECK_OK(arenite_lease_acquire(lease, 0, &p, NULL));
    memset(p, 1, 1000);
    CHECK_OK(arenite_lease_return(lease, p));
    CHECK_OK(arenite_lease_destroy(lease));
    CHECK_OK(arenite_pool_alloc(user, 1000, 0, &p, NULL));
    memset(p, 1, 1000);
    CHECK_OK(arenite_pool_free(user, p, NULL));
    CHECK_OK(arenite_pool_destroy(user, NULL));
}

int main(void) {
    RUN(null_pools_are_refused);
    RUN(null_outputs_are_refused_and_leak_nothing);
    RUN(sizes_that_cannot_be_are_refused_everywhere);
    RUN(a_growing_pool_refuses_them_too);
    RUN(alignments_that_are_none_are_refused);
    RUN(numbers_and_bits_that_mean_nothing_are_refused);
    RUN(structs_of_zeros_and_ones_are_refused);
    RUN(handles_of_another_type_are_refused);
    RUN(regions_misaligned_overlapping_or_too_many);
    RUN(a_buffer_can_be_used_again_and_again);
    RUN(frames_leases_and_fallbacks_outlive_the_handle);
    return DONE();
}
