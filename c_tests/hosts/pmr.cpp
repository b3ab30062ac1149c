/* std::pmr over a pool: containers, other resources on top of it, threads, and what happens without memory. */
#include "check.h"

#include <arenite/pmr.hpp>

#include <list>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

arenite_pool_stats_t stats(const arenite_pool_t *pool) {
    arenite_pool_stats_t s{};
    s.struct_size = sizeof s;
    CHECK_OK(arenite_pool_stats(pool, &s));
    return s;
}

void containers_live_in_the_pool() {
    arenite::pool_resource memory;
    {
        std::pmr::vector<float> tensor(1 << 20, 1.5f, &memory);
        std::pmr::map<int, std::pmr::string> names(&memory);
        std::pmr::list<std::pmr::vector<int>> lists(&memory);
        for (int i = 0; i < 500; i++) {
            names.emplace(i, "a name that is too long to be kept inside the string " + std::to_string(i));
            lists.emplace_back(std::size_t(i), i);
        }
        CHECK_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 128, 0);
        CHECK(stats(memory.pool()).blocks > 1000);
        CHECK(names.at(499).find("499") != std::string::npos && lists.back().back() == 499);
        CHECK(names.at(7).get_allocator().resource() == &memory);
    }
    CHECK_EQ(stats(memory.pool()).blocks, 0);
    CHECK_EQ(stats(memory.pool()).bad_pointers, 0);
}

void other_resources_stand_on_it() {
    arenite::pool_resource memory;
    {
        std::pmr::monotonic_buffer_resource run(&memory);
        std::pmr::unsynchronized_pool_resource small(&memory);
        std::pmr::vector<double> a(&run), b(&small);
        for (int i = 0; i < 10000; i++) {
            a.push_back(i);
            b.push_back(i);
        }
        CHECK(a == b);
        CHECK(stats(memory.pool()).blocks > 0);
    }
    CHECK_EQ(stats(memory.pool()).blocks, 0);
}

void alignments_are_met() {
    arenite::pool_resource memory;
    std::pmr::memory_resource &resource = memory;
    for (std::size_t alignment = 1; alignment <= 16384; alignment *= 2) {
        void *data = resource.allocate(100, alignment);
        CHECK_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0);
        resource.deallocate(data, 100, alignment);
    }
    void *empty = resource.allocate(0, 1);
    CHECK(empty != nullptr);
    resource.deallocate(empty, 0, 1);
}

void resources_are_equal_where_one_can_free_for_the_other() {
    arenite::pool_resource own, other;
    arenite::pool_resource same(*own.pool());
    CHECK(own == same && !(own == other) && !(own == *std::pmr::new_delete_resource()));
    void *data = own.allocate(1000);
    same.deallocate(data, 1000);
    CHECK_EQ(stats(own.pool()).blocks, 0);
}

void without_memory_there_is_bad_alloc() {
    arenite_pool_options_t options{};
    options.struct_size = sizeof options;
    options.cap = 1 << 20;
    arenite::pool_resource memory(&options);
    bool thrown = false;
    try {
        std::pmr::vector<char> large(4 << 20, &memory);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    CHECK_EQ(std::pmr::vector<char>(1000, 'x', &memory)[999], 'x');
    options.growth = 99;
    thrown = false;
    try {
        arenite::pool_resource wrong(&options);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
}

void threads_share_one_resource() {
    arenite::pool_resource memory;
    std::vector<std::thread> threads;
    std::size_t sums[4] = {0, 0, 0, 0};
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&memory, &sums, t] {
            for (int i = 0; i < 300; i++) {
                std::pmr::unordered_map<int, int> map(&memory);
                for (int k = 0; k < 50; k++) {
                    map[k] = t;
                }
                sums[t] += std::size_t(map.at(49)) + map.size();
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (std::size_t t = 0; t < 4; t++) {
        CHECK_EQ(sums[t], 300 * (t + 50));
    }
    CHECK_EQ(stats(memory.pool()).blocks, 0);
}

} // namespace

int main() {
    RUN(containers_live_in_the_pool);
    RUN(other_resources_stand_on_it);
    RUN(alignments_are_met);
    RUN(resources_are_equal_where_one_can_free_for_the_other);
    RUN(without_memory_there_is_bad_alloc);
    RUN_THREADS(threads_share_one_resource);
    return DONE();
}
