/* ExecuTorch's memory roles, under a class with the interface of its allocator. */
#include "check.h"

#include <arenite/executorch.hpp>

namespace {

class HostAllocator {
public:
    HostAllocator(uint32_t size, uint8_t *base) : size_(size), base_(base) {}
    virtual ~HostAllocator() {}
    virtual void *allocate(size_t, size_t = 8) { return nullptr; }
    virtual uint8_t *base_address() const { return base_; }
    virtual uint32_t size() const { return size_; }
    virtual size_t used_size() const { return 0; }
    virtual size_t free_size() const { return 0; }
    virtual void reset() {}

private:
    uint32_t size_;
    uint8_t *base_;
};

struct Span {
    Span() {}
    Span(uint8_t *data, size_t size) : data_(data), size_(size) {}
    uint8_t *data() const { return data_; }
    size_t size() const { return size_; }

private:
    uint8_t *data_ = nullptr;
    size_t size_ = 0;
};

using Allocator = arenite::executorch::Allocator<HostAllocator>;

arenite_pool_t *pool;

arenite_pool_stats_t stats() {
    arenite_pool_stats_t s;
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    CHECK_OK(arenite_pool_stats(pool, &s));
    return s;
}

void blocks_are_aligned_and_apart() {
    Allocator ours(pool, 4096);
    HostAllocator &host = ours;
    CHECK(host.base_address() == nullptr && host.size() == 0);
    uint8_t *blocks[500];
    size_t sizes[500];
    for (int i = 0; i < 500; i++) {
        const size_t alignment = size_t(1) << (i % 11);
        sizes[i] = size_t((i * 37) % 700);
        blocks[i] = static_cast<uint8_t *>(host.allocate(sizes[i], alignment));
        CHECK(blocks[i] != nullptr);
        CHECK_EQ(reinterpret_cast<uintptr_t>(blocks[i]) % alignment, 0);
        memset(blocks[i], i & 0xff, sizes[i]);
    }
    int changed = 0;
    for (int i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            changed += blocks[i][k] != (i & 0xff);
        }
    }
    CHECK_EQ(changed, 0);
    CHECK(host.used_size() > 500 * 300 && host.size() >= host.used_size());
    CHECK(stats().blocks > 10);
    CHECK(host.allocate(10, 3) == nullptr && host.allocate(10, 0) == nullptr);
    CHECK(host.allocate(SIZE_MAX - 8, 8) == nullptr && host.allocate(SIZE_MAX / 2, 1024) == nullptr);
}

void a_reset_keeps_one_chunk_and_ends_all_blocks() {
    Allocator ours(pool, 1024);
    HostAllocator &host = ours;
    for (int instruction = 0; instruction < 100; instruction++) {
        for (int i = 0; i < 5; i++) {
            void *block = host.allocate(3000, 16);
            CHECK(block != nullptr);
            memset(block, i, 3000);
        }
        host.reset();
        CHECK_EQ(host.used_size(), 0);
        CHECK_EQ(stats().blocks, 1);
    }
    CHECK(ours.peak() >= 15000 && ours.requests() == 500);
    const uint64_t before = ours.chunks();
    host.reset();
    CHECK(host.allocate(3000, 16) != nullptr);
    CHECK_EQ(ours.chunks(), before);
    Allocator unused(pool);
    static_cast<HostAllocator &>(unused).reset();
}

void one_block_larger_than_a_chunk_has_one_of_its_own() {
    Allocator ours(pool, 1024);
    HostAllocator &host = ours;
    void *block = host.allocate(100000, 4096);
    CHECK(block != nullptr);
    CHECK_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0);
    memset(block, 1, 100000);
    CHECK_EQ(ours.chunks(), 1);
    host.reset();
    CHECK(host.allocate(100000, 4096) != nullptr);
    CHECK_EQ(ours.chunks(), 1);
}

void planned_buffers_are_aligned_zeroed_and_as_large_as_asked() {
    arenite::executorch::Buffers<Span> planned(pool);
    const int64_t sizes[] = {0, 1000, 129024, 1, 64, 5000, 7};
    for (int64_t bytes : sizes) {
        CHECK(planned.add(bytes));
    }
    CHECK(!planned.add(-1) && !planned.add(INT64_MAX));
    CHECK_EQ(planned.size(), 7);
    for (size_t i = 0; i < planned.size(); i++) {
        CHECK_EQ(planned.data()[i].size(), sizes[i]);
        CHECK_EQ(reinterpret_cast<uintptr_t>(planned.data()[i].data()) % 128, 0);
        for (size_t k = 0; k < planned.data()[i].size(); k++) {
            CHECK(planned.data()[i].data()[k] == 0 || k > 100000);
        }
    }
}

} // namespace

int main() {
    CHECK_OK(arenite_pool_create(nullptr, &pool, nullptr));
    RUN(blocks_are_aligned_and_apart);
    RUN(a_reset_keeps_one_chunk_and_ends_all_blocks);
    RUN(one_block_larger_than_a_chunk_has_one_of_its_own);
    RUN(planned_buffers_are_aligned_zeroed_and_as_large_as_asked);
    CHECK_EQ(stats().blocks, 0);
    CHECK_OK(arenite_pool_destroy(pool, nullptr));
    return DONE();
}
