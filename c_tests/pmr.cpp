// std::pmr over a pool: containers, alignment, refusal, equality, lifetimes.
#include "check.h"
#include <arenite/pmr.hpp>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

static arenite_pool_stats_t stats(const arenite_pool_t *pool) {
    arenite_pool_stats_t s{};
    s.struct_size = sizeof s;
    CHECK_OK(arenite_pool_stats(pool, &s));
    return s;
}

static void containers_live_in_the_pool() {
    arenite::pool_resource memory;
    {
        std::pmr::vector<float> tensor(1 << 16, 1.5f, &memory);
        CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 128 == 0);
        std::pmr::unordered_map<int, std::pmr::string> names(&memory);
        for (int i = 0; i < 1000; i++) {
            names.emplace(i, "a name that is too long for the string's own buffer");
        }
        std::pmr::vector<float> copy(tensor, &memory);
        copy.resize(1 << 17);
        CHECK(copy[0] == 1.5f && names.at(999).size() == 51);
        CHECK(stats(memory.pool()).requested_bytes >= (3u << 16) * sizeof(float));
    }
    CHECK_EQ(stats(memory.pool()).blocks, 0);
    CHECK_EQ(stats(memory.pool()).bad_pointers, 0);
}

static void alignments_are_met() {
    arenite::pool_resource memory;
    for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
        void *p = memory.allocate(100, alignment);
        CHECK(reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
        memory.deallocate(p, 100, alignment);
    }
    void *nothing = memory.allocate(0);
    CHECK(nothing != nullptr);
    memory.deallocate(nothing, 0);
}

static void a_full_pool_throws_and_goes_on() {
    arenite_pool_options_t o{};
    o.struct_size = sizeof o;
    o.first_region = 1 << 16;
    o.growth = ARENITE_GROWTH_NONE;
    arenite::pool_resource memory(&o);
    bool thrown = false;
    try {
        std::pmr::vector<char> big(1 << 20, &memory);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    std::pmr::vector<char> small(1 << 10, &memory);
    CHECK_EQ(stats(memory.pool()).blocks, 1);
    o.growth = 99;
    thrown = false;
    try {
        arenite::pool_resource wrong(&o);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
}

static void one_pool_is_one_resource() {
    arenite_pool_t *pool = nullptr;
    CHECK_OK(arenite_pool_create(nullptr, &pool, nullptr));
    {
        arenite::pool_resource a(*pool), b(*pool), other;
        CHECK(a == b && a != other);
        CHECK(!a.is_equal(*std::pmr::new_delete_resource()));
        // What one allocates the other may free, and equal resources let a container move its memory.
        void *p = a.allocate(100);
        b.deallocate(p, 100);
        std::pmr::vector<int> from(1000, 3, &a), to(&b);
        const int *data = from.data();
        to = std::move(from);
        CHECK(to.data() == data);
    }
    CHECK_OK(arenite_pool_destroy(pool, nullptr));
}

int main() {
    RUN(containers_live_in_the_pool);
    RUN(alignments_are_met);
    RUN(a_full_pool_throws_and_goes_on);
    RUN(one_pool_is_one_resource);
    return DONE();
}
