/* The heaps over offsets, with records of their own and in lent memory: handles, misuse, resize, statistics. */
#include "helpers.h"

#ifndef _WIN32
#include <pthread.h>
#endif

static arenite_heap_options_t options(uint64_t bytes) {
    arenite_heap_options_t o;
    INIT(o);
    o.bytes = bytes;
    return o;
}

static arenite_heap_stats_t stats(const arenite_heap_t *heap) {
    arenite_heap_stats_t s;
    INIT(s);
    CHECK_OK(arenite_heap_stats(heap, &s));
    CHECK_EQ(s.live_bytes + s.free_bytes, s.total_bytes);
    CHECK_OK(arenite_heap_check(heap, NULL));
    return s;
}

static arenite_heap_t *heap_of(uint64_t bytes, uint32_t flags) {
    arenite_heap_options_t o = options(bytes);
    arenite_heap_t *heap = NULL;
    o.flags = flags;
    CHECK_OK(arenite_heap_create(&o, &heap, NULL));
    return heap;
}

/* A region of 256 GiB: nobody touches it. */
static void blocks_of_memory_that_is_not_there(void) {
    arenite_heap_options_t o = options((uint64_t)1 << 38);
    arenite_heap_t *heap = NULL;
    arenite_heap_block_t a, b, c, found;
    uint64_t bytes = 0, requested = 0;
    o.base = 0xFFFF000000000080u;
    o.region = 9;
    o.flags = ARENITE_HEAP_FIND;
    CHECK_OK(arenite_heap_create(&o, &heap, NULL));
    CHECK_OK(arenite_heap_alloc(heap, (uint64_t)1 << 37, 0, &a, NULL));
    CHECK_OK(arenite_heap_alloc(heap, 1000, 65536, &b, NULL));
    CHECK_OK(arenite_heap_alloc_hint(heap, 100, 0, 5000, ARENITE_POOL_HINT_GROWING, &c, NULL));
    CHECK(a.region == 9 && b.region == 9);
    CHECK_EQ((o.base + arenite_heap_offset(b)) % 65536, 0);
    CHECK_OK(arenite_heap_size(heap, b, &bytes, &requested));
    CHECK(bytes == 1024 && requested == 1000);
    CHECK_OK(arenite_heap_size(heap, c, &bytes, NULL));
    CHECK_EQ(bytes, 5120);
    CHECK_OK(arenite_heap_find(heap, arenite_heap_offset(b), &found));
    CHECK(memcmp(&found, &b, sizeof b) == 0);
    CHECK_STATUS(arenite_heap_find(heap, arenite_heap_offset(b) + 128, &found), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(stats(heap).blocks, 3);
    CHECK_EQ(stats(heap).requested_bytes, ((uint64_t)1 << 37) + 1100);
    CHECK_OK(arenite_heap_free(heap, b, NULL));
    CHECK_OK(arenite_heap_free(heap, a, NULL));
    CHECK_OK(arenite_heap_free(heap, c, NULL));
    CHECK(stats(heap).free_blocks == 1 && stats(heap).largest_free == (uint64_t)1 << 38);
    CHECK_OK(arenite_heap_destroy(heap, NULL));
    CHECK_OK(arenite_heap_destroy(NULL, NULL));
}

static void every_bad_handle_is_refused(void) {
    arenite_heap_t *heap = heap_of(1 << 20, 0), *other = heap_of(1 << 20, 0);
    arenite_heap_block_t a, b, first, foreign, bad;
    arenite_failure_t f = no_failure();
    unsigned k;
    memset(&bad, 0, sizeof bad);
    CHECK_OK(arenite_heap_alloc(other, 128, 0, &first, NULL));
    CHECK_OK(arenite_heap_alloc(other, 128, 0, &foreign, NULL));
    CHECK_OK(arenite_heap_alloc(heap, 128, 0, &a, NULL));
    /* The first block of a heap is not what zeros name. */
    CHECK_STATUS(arenite_heap_free(heap, bad, &f), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_free(heap, foreign, NULL), ARENITE_ERR_ARGUMENT);
    for (k = 0; k < 4; k++) {
        bad = a;
        switch (k) {
            case 0: bad.region++; break;
            case 1: bad.granule++; break;
            case 2: bad.node = 0xFFFFFFFF; break;
            default: bad.generation--; break;
        }
        CHECK_STATUS(arenite_heap_free(heap, bad, NULL), ARENITE_ERR_ARGUMENT);
        CHECK_STATUS(arenite_heap_resize(heap, bad, 1, 0, NULL), ARENITE_ERR_ARGUMENT);
        CHECK_STATUS(arenite_heap_size(heap, bad, NULL, NULL), ARENITE_ERR_ARGUMENT);
    }
    CHECK_OK(arenite_heap_free(heap, a, NULL));
    CHECK_STATUS(arenite_heap_free(heap, a, NULL), ARENITE_ERR_ARGUMENT);
    for (k = 0; k < 1000; k++) {
        CHECK_OK(arenite_heap_alloc(heap, 128, 0, &b, NULL));
        CHECK_STATUS(arenite_heap_free(heap, a, NULL), ARENITE_ERR_ARGUMENT);
        CHECK_OK(arenite_heap_free(heap, b, NULL));
    }
    CHECK(stats(heap).blocks == 0 && stats(heap).bad_handles > 1000);
    CHECK_STATUS(arenite_heap_destroy(other, &f), ARENITE_ERR_BUSY);
    CHECK_EQ(f.needed, 2);
    CHECK_STATUS(arenite_heap_find(other, 0, &b), ARENITE_ERR_UNSUPPORTED);
    CHECK_OK(arenite_heap_free(other, foreign, NULL));
    CHECK_OK(arenite_heap_free(other, first, NULL));
    CHECK_OK(arenite_heap_destroy(other, NULL));
    CHECK_OK(arenite_heap_destroy(heap, NULL));
}

static void refused_requests_say_what_and_change_nothing(void) {
    static const uint64_t alignments[] = {3, 127, 129, (uint64_t)1 << 63, UINT64_MAX};
    arenite_heap_options_t o = options(1 << 16);
    arenite_heap_t *heap = NULL;
    arenite_heap_block_t a, b, c, more[3];
    arenite_failure_t f = no_failure();
    uint64_t k;
    o.max_blocks = 2;
    CHECK_OK(arenite_heap_create(&o, &heap, NULL));
    CHECK_OK(arenite_heap_alloc(heap, 1 << 15, 0, &a, NULL));
    memset(&b, 0xEE, sizeof b);
    c = b;
    CHECK_STATUS(arenite_heap_alloc(heap, (1 << 15) + 1, 0, &b, &f), ARENITE_ERR_CAPACITY);
    CHECK(f.needed == (1 << 15) + 1 && f.available == 1 << 15);
    for (k = 0; k < 4096; k++) {
        CHECK_STATUS(arenite_heap_alloc(heap, UINT64_MAX - k, 0, &b, NULL), ARENITE_ERR_CAPACITY);
        CHECK_STATUS(arenite_heap_alloc_hint(heap, 1, 0, UINT64_MAX - k, 0, &b, NULL), ARENITE_ERR_CAPACITY);
        CHECK_STATUS(arenite_heap_resize(heap, a, UINT64_MAX - k, 0, NULL), ARENITE_ERR_CAPACITY);
    }
    for (k = 0; k < COUNT(alignments); k++) {
        CHECK(arenite_heap_alloc(heap, 1, alignments[k], &b, NULL) != ARENITE_OK);
    }
    CHECK_STATUS(arenite_heap_alloc_hint(heap, 1, 0, 0, 5, &b, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_heap_alloc(heap, 1, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_heap_alloc(NULL, 1, 0, &b, NULL), ARENITE_ERR_NULL);
    CHECK(memcmp(&b, &c, sizeof b) == 0);
    CHECK_OK(arenite_heap_resize(heap, a, 1000, 0, NULL));
    CHECK_OK(arenite_heap_resize(heap, a, 1 << 16, 0, NULL));
    CHECK_OK(arenite_heap_resize(heap, a, 128, 0, NULL));
    /* Records for two blocks with gaps beside them are records for four without. */
    for (k = 0; k < 3; k++) {
        CHECK_OK(arenite_heap_alloc(heap, 0, 0, &more[k], NULL));
    }
    CHECK_STATUS(arenite_heap_alloc(heap, 128, 0, &c, NULL), ARENITE_ERR_NO_MEMORY);
    CHECK_OK(arenite_heap_free(heap, more[2], NULL));
    CHECK_OK(arenite_heap_alloc(heap, 128, 0, &more[2], NULL));
    for (k = 0; k < 3; k++) {
        CHECK_OK(arenite_heap_free(heap, more[k], NULL));
    }
    CHECK_OK(arenite_heap_free(heap, a, NULL));
    CHECK_EQ(stats(heap).free_blocks, 1);
    CHECK_OK(arenite_heap_destroy(heap, NULL));
}

static void options_that_mean_nothing(void) {
    arenite_heap_options_t o = options(127);
    arenite_heap_t *heap = NULL;
    arenite_failure_t f = no_failure();
    CHECK_STATUS(arenite_heap_create(NULL, &heap, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_heap_create(&o, &heap, NULL), ARENITE_ERR_ARGUMENT);
    o.bytes = (uint64_t)1 << 39;
    CHECK_STATUS(arenite_heap_create(&o, &heap, &f), ARENITE_ERR_CAPACITY);
    CHECK_EQ(f.needed, (uint64_t)1 << 39);
    o.bytes = 4096;
    o.base = 64;
    CHECK_STATUS(arenite_heap_create(&o, &heap, NULL), ARENITE_ERR_ALIGNMENT);
    o.base = 0;
    o.flags = 2;
    CHECK_STATUS(arenite_heap_create(&o, &heap, NULL), ARENITE_ERR_ARGUMENT);
    o.flags = 0;
    o.reserved = 1;
    CHECK_STATUS(arenite_heap_create(&o, &heap, NULL), ARENITE_ERR_ARGUMENT);
    o.reserved = 0;
    CHECK_STATUS(arenite_heap_create(&o, NULL, NULL), ARENITE_ERR_NULL);
    CHECK(heap == NULL);
    /* As many blocks as the region can hold: no record is reserved for more. */
    o.max_blocks = UINT64_MAX;
    CHECK_OK(arenite_heap_create(&o, &heap, NULL));
    CHECK_OK(arenite_heap_destroy(heap, NULL));
}

/* Random calls, right and wrong, on both kinds of heap, against a map of who holds which 128 bytes. */
static uint32_t noise = 2463534242u;

static uint32_t below(uint32_t n) {
    noise ^= noise << 13;
    noise ^= noise >> 17;
    noise ^= noise << 5;
    return noise % n;
}

enum { GRANULES = 2048, SLOTS = 64 };

typedef struct {
    arenite_heap_t *heap;
    arenite_bare_heap_t *bare;
    arenite_heap_block_t block[SLOTS], stale;
    uint64_t bytes[SLOTS]; /* what it was last asked for, and one more: 0 is no block */
    unsigned char map[GRANULES];
} model_t;

static arenite_status_t model_alloc(model_t *m, uint64_t bytes, uint64_t alignment, uint64_t headroom, uint32_t hint,
                                    arenite_heap_block_t *out) {
    return m->heap != NULL ? arenite_heap_alloc_hint(m->heap, bytes, alignment, headroom, hint, out, NULL)
                           : arenite_bare_heap_alloc(m->bare, bytes, alignment, headroom, hint, out, NULL);
}

static arenite_status_t model_free(model_t *m, arenite_heap_block_t block) {
    return m->heap != NULL ? arenite_heap_free(m->heap, block, NULL) : arenite_bare_heap_free(m->bare, block, NULL);
}

static arenite_status_t model_resize(model_t *m, arenite_heap_block_t block, uint64_t bytes) {
    return m->heap != NULL ? arenite_heap_resize(m->heap, block, bytes, 0, NULL)
                           : arenite_bare_heap_resize(m->bare, block, bytes, 0, NULL);
}

/* Marks the granules of `bytes` bytes at `offset` from `was` to `is`; how many were something else. */
static unsigned model_mark(model_t *m, uint64_t offset, uint64_t bytes, unsigned char was, unsigned char is) {
    uint64_t g = offset / 128, end = g + (bytes < 128 ? 1 : (bytes + 127) / 128);
    unsigned wrong = 0;
    for (; g < end; g++) {
        wrong += g >= GRANULES || m->map[g] != was;
        if (g < GRANULES) {
            m->map[g] = is;
        }
    }
    return wrong;
}

static void model_step(model_t *m) {
    unsigned k = below(SLOTS);
    unsigned char name = (unsigned char)(k + 1);
    arenite_heap_block_t b = m->block[k];
    uint64_t bytes = below(8) == 0 ? below(40000) : below(3000), offset = arenite_heap_offset(b);
    uint64_t alignment = below(20) == 0 ? below(300) : (uint64_t)1 << below(14);
    if (below(10) == 0) {
        /* A stale handle, or a live one with one word changed: refused. */
        uint32_t words[4];
        if (m->bytes[k] == 0 || below(4) == 0) {
            b = m->stale;
        } else {
            memcpy(words, &b, sizeof words);
            words[below(4)] ^= 1u << below(32);
            memcpy(&b, words, sizeof words);
        }
        CHECK_STATUS(model_free(m, b), ARENITE_ERR_ARGUMENT);
        CHECK_STATUS(model_resize(m, b, bytes), ARENITE_ERR_ARGUMENT);
    } else if (m->bytes[k] == 0) {
        arenite_status_t status = model_alloc(m, bytes, alignment, below(4) == 0 ? below(500) : 0, below(6), &m->block[k]);
        if (status == ARENITE_OK) {
            offset = arenite_heap_offset(m->block[k]);
            CHECK(alignment == 0 || offset % alignment == 0);
            CHECK_EQ(model_mark(m, offset, bytes, 0, name), 0);
            m->bytes[k] = bytes + 1;
        } else {
            CHECK(status != ARENITE_ERR_INTERNAL && memcmp(&m->block[k], &b, sizeof b) == 0);
        }
    } else if (below(3) == 0) {
        if (model_resize(m, b, bytes) == ARENITE_OK) {
            CHECK_EQ(model_mark(m, offset, m->bytes[k] - 1, name, 0), 0);
            CHECK_EQ(model_mark(m, offset, bytes, 0, name), 0);
            m->bytes[k] = bytes + 1;
        }
    } else {
        CHECK_OK(model_free(m, b));
        CHECK_EQ(model_mark(m, offset, m->bytes[k] - 1, name, 0), 0);
        m->bytes[k] = 0;
        m->stale = b;
    }
}

static void random_calls_keep_to_the_map(void) {
    static unsigned char memory[16384];
    static model_t m;
    arenite_heap_options_t o = options((uint64_t)GRANULES * 128);
    unsigned round, k;
    for (round = 0; round < 8; round++) {
        memset(&m, 0, sizeof m);
        o.flags = round & 1 ? ARENITE_HEAP_FIND : 0;
        o.max_blocks = round & 2 ? SLOTS : round & 4 ? 20 : 0;
        o.large_bytes = round & 1 ? 1000 : 0;
        o.region = round * 3;
        if (o.max_blocks != 0 && round & 1) {
            CHECK_OK(arenite_bare_heap_init(memory + round, sizeof memory - round, &o, &m.bare, NULL));
        } else {
            CHECK_OK(arenite_heap_create(&o, &m.heap, NULL));
        }
        for (k = 0; k < 40000; k++) {
            model_step(&m);
            if (k % 500 == 0) {
                CHECK_OK(m.heap != NULL ? arenite_heap_check(m.heap, NULL) : arenite_bare_heap_check(m.bare, NULL));
            }
        }
        for (k = 0; k < SLOTS; k++) {
            if (m.bytes[k] != 0) {
                CHECK_OK(model_free(&m, m.block[k]));
            }
        }
        if (m.heap != NULL) {
            CHECK_EQ(stats(m.heap).free_blocks, 1);
            CHECK_OK(arenite_heap_destroy(m.heap, NULL));
        }
    }
}

typedef struct {
    uint64_t at, live, free;
    int broken;
} walk_t;

static void see(void *user, uint64_t offset, uint64_t bytes, uint64_t requested, const arenite_heap_block_t *block) {
    walk_t *w = (walk_t *)user;
    if (offset != w->at || (block != NULL && (arenite_heap_offset(*block) != offset || requested > bytes))) {
        w->broken = 1;
    }
    w->at += bytes;
    *(block != NULL ? &w->live : &w->free) += bytes;
}

/* Twenty times the records reserved at first, in an order that leaves a gap beside every block. */
static void records_grow_and_a_walk_tiles_the_region(void) {
    enum { N = 1300 };
    static arenite_heap_block_t blocks[N];
    arenite_heap_t *heap = heap_of(1 << 20, ARENITE_HEAP_FIND);
    walk_t w;
    unsigned k;
    for (k = 0; k < N; k++) {
        CHECK_OK(arenite_heap_alloc(heap, 1 + k % 700, 0, &blocks[k], NULL));
    }
    for (k = 0; k < N; k += 2) {
        CHECK_OK(arenite_heap_free(heap, blocks[k], NULL));
    }
    memset(&w, 0, sizeof w);
    CHECK_OK(arenite_heap_walk(heap, see, &w));
    CHECK(!w.broken && w.at == 1 << 20 && w.live == stats(heap).live_bytes && w.free == stats(heap).free_bytes);
    CHECK_STATUS(arenite_heap_walk(heap, NULL, NULL), ARENITE_ERR_NULL);
    for (k = 1; k < N; k += 2) {
        CHECK_OK(arenite_heap_free(heap, blocks[k], NULL));
    }
    CHECK_EQ(stats(heap).free_blocks, 1);
    CHECK(stats(heap).max_steps <= 40);
    CHECK_OK(arenite_heap_destroy(heap, NULL));
}

#ifndef _WIN32
static void *churn(void *user) {
    const arenite_heap_t *heap = (const arenite_heap_t *)user;
    arenite_heap_block_t held[64];
    unsigned k, n = 0, wrong = 0;
    uint32_t x = 12345;
    for (k = 0; k < 20000; k++) {
        x = x * 1664525u + 1013904223u;
        if (n < 64 && (x >> 16 & 1)) {
            n += arenite_heap_alloc(heap, x >> 8 & 0xFFF, 0, &held[n], NULL) == ARENITE_OK;
        } else if (n > 0) {
            wrong += arenite_heap_free(heap, held[--n], NULL) != ARENITE_OK;
        }
    }
    while (n > 0) {
        wrong += arenite_heap_free(heap, held[--n], NULL) != ARENITE_OK;
    }
    return wrong ? user : NULL;
}

static void threads_share_a_heap(void) {
    arenite_heap_t *heap = heap_of(1 << 18, 0);
    pthread_t threads[4];
    void *wrong = NULL;
    unsigned k;
    for (k = 0; k < 4; k++) {
        CHECK_EQ(pthread_create(&threads[k], NULL, churn, heap), 0);
    }
    for (k = 0; k < 4; k++) {
        CHECK_EQ(pthread_join(threads[k], &wrong), 0);
        CHECK(wrong == NULL);
    }
    CHECK(stats(heap).blocks == 0 && stats(heap).free_blocks == 1 && stats(heap).allocs == stats(heap).frees);
    CHECK_OK(arenite_heap_destroy(heap, NULL));
}
#endif

/* The same heap in a static array, at every address of it, and with a byte less. */
static void lent_memory_is_exact_at_any_address(void) {
    static unsigned char memory[16384];
    arenite_heap_options_t o = options(1 << 20);
    arenite_bare_heap_t *heap = NULL;
    arenite_heap_block_t blocks[33], rest[40];
    arenite_heap_stats_t s;
    arenite_failure_t f = no_failure();
    size_t needed = 0, shift;
    unsigned k, more;
    o.max_blocks = 32;
    o.flags = ARENITE_HEAP_FIND;
    CHECK_OK(arenite_bare_heap_bytes(&o, &needed));
    CHECK(needed < 2400 + 64 * 33 + 4 * 256);
    for (shift = 0; shift < 16; shift++) {
        memset(memory, 0xA5, sizeof memory);
        CHECK_STATUS(arenite_bare_heap_init(memory + shift, needed - 1, &o, &heap, &f), ARENITE_ERR_CAPACITY);
        CHECK(f.needed == needed && f.available == needed - 1 && memory[shift] == 0xA5);
        CHECK_OK(arenite_bare_heap_init(memory + shift, needed, &o, &heap, NULL));
        for (k = 0; k < 32; k++) {
            CHECK_OK(arenite_bare_heap_alloc(heap, 1 + k * 100, 1024, 0, k % 5, &blocks[k], NULL));
            CHECK_EQ(arenite_heap_offset(blocks[k]) % 1024, 0);
        }
        for (more = 0; arenite_bare_heap_alloc(heap, 1, 0, 0, 0, &rest[more], &f) == ARENITE_OK; more++) {
            CHECK(more < 33);
        }
        CHECK_EQ(f.status, ARENITE_ERR_NO_MEMORY);
        while (more > 0) {
            CHECK_OK(arenite_bare_heap_free(heap, rest[--more], NULL));
        }
        CHECK_OK(arenite_bare_heap_check(heap, NULL));
        CHECK_OK(arenite_bare_heap_find(heap, arenite_heap_offset(blocks[7]), &blocks[32], NULL));
        CHECK(memcmp(&blocks[7], &blocks[32], sizeof blocks[7]) == 0);
        CHECK_OK(arenite_bare_heap_resize(heap, blocks[7], 1, 0, NULL));
        CHECK_STATUS(arenite_bare_heap_resize(heap, blocks[7], 1 << 20, 0, &f), ARENITE_ERR_CAPACITY);
        for (k = 0; k < 32; k++) {
            CHECK_OK(arenite_bare_heap_free(heap, blocks[k], NULL));
            CHECK_STATUS(arenite_bare_heap_free(heap, blocks[k], NULL), ARENITE_ERR_ARGUMENT);
        }
        INIT(s);
        CHECK_OK(arenite_bare_heap_stats(heap, &s));
        CHECK(s.free_blocks == 1 && s.largest_free == 1 << 20 && s.bad_handles == 32);
        CHECK_OK(arenite_bare_heap_check(heap, NULL));
        CHECK(memory[shift + needed] == 0xA5);
    }
}

static void lent_memory_misused(void) {
    static unsigned char memory[8192];
    arenite_heap_options_t o = options(1 << 20);
    arenite_bare_heap_t *heap = NULL;
    arenite_heap_block_t block;
    size_t bytes = 77;
    CHECK_STATUS(arenite_bare_heap_bytes(&o, &bytes), ARENITE_ERR_ARGUMENT);
    o.max_blocks = 4;
    CHECK_STATUS(arenite_bare_heap_bytes(&o, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_heap_bytes(NULL, &bytes), ARENITE_ERR_NULL);
    o.bytes = (uint64_t)1 << 27;
    CHECK_STATUS(arenite_bare_heap_bytes(&o, &bytes), ARENITE_ERR_CAPACITY);
    o.bytes = ((uint64_t)1 << 27) - 1;
    CHECK_EQ(bytes, 77);
    CHECK_OK(arenite_bare_heap_bytes(&o, &bytes));
    CHECK_STATUS(arenite_bare_heap_init(NULL, sizeof memory, &o, &heap, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_heap_init(memory, sizeof memory, NULL, &heap, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_heap_init(memory, sizeof memory, &o, NULL, NULL), ARENITE_ERR_NULL);
    o.base = 1;
    CHECK_STATUS(arenite_bare_heap_init(memory, sizeof memory, &o, &heap, NULL), ARENITE_ERR_ALIGNMENT);
    o.base = 0;
    CHECK(heap == NULL);
    CHECK_OK(arenite_bare_heap_init(memory, sizeof memory, &o, &heap, NULL));
    CHECK_STATUS(arenite_bare_heap_alloc(NULL, 1, 0, 0, 0, &block, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_heap_alloc(heap, 1, 0, 0, 0, NULL, NULL), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_bare_heap_alloc(heap, 1, 3, 0, 0, &block, NULL), ARENITE_ERR_ALIGNMENT);
    CHECK_STATUS(arenite_bare_heap_find(heap, 0, &block, NULL), ARENITE_ERR_UNSUPPORTED);
    memset(memory, 0, sizeof memory);
    CHECK_STATUS(arenite_bare_heap_alloc(heap, 1, 0, 0, 0, &block, NULL), ARENITE_ERR_ARGUMENT);
}

int main(void) {
    RUN(blocks_of_memory_that_is_not_there);
    RUN(every_bad_handle_is_refused);
    RUN(refused_requests_say_what_and_change_nothing);
    RUN(options_that_mean_nothing);
    RUN(random_calls_keep_to_the_map);
    RUN(records_grow_and_a_walk_tiles_the_region);
#ifndef _WIN32
    RUN(threads_share_a_heap);
#endif
    RUN(lent_memory_is_exact_at_any_address);
    RUN(lent_memory_misused);
    return DONE();
}
