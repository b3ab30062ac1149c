/* The allocator for ONNX Runtime, driven as the engine drives it: through the function pointers of its struct. */
#include "check.h"

#include <arenite/onnxruntime.hpp>

#include <thread>
#include <vector>

namespace {

struct Device {
    int device;
};

/* The struct as it was before Reserve, and as it is now. */
struct OldHost {
    uint32_t version;
    void *(*Alloc)(OldHost *, size_t);
    void (*Free)(OldHost *, void *);
    const Device *(*Info)(const OldHost *);
};
struct NewHost {
    uint32_t version;
    void *(*Alloc)(NewHost *, size_t);
    void (*Free)(NewHost *, void *);
    const Device *(*Info)(const NewHost *);
    void *(*Reserve)(NewHost *, size_t);
    void *(*GetStats)(const NewHost *, void **);
};

using arenite::onnxruntime::Allocator;
using arenite::Frame;
using arenite::Memory;
using arenite::Signature;

arenite_frame_stats_t frames(const Memory &memory) {
    arenite_frame_stats_t stats;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    CHECK_OK(arenite_frame_stats(memory.pool(), &stats));
    return stats;
}

arenite_pool_stats_t pool(const Memory &memory) {
    arenite_pool_stats_t stats;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    CHECK_OK(arenite_pool_stats(memory.pool(), &stats));
    return stats;
}

/* A run of a network: each layer writes its output, reads its input and lets go of it. Counts bytes that changed. */
int net(NewHost *host, size_t width, unsigned char seed, void **kept) {
    int changed = 0;
    unsigned char *before = nullptr;
    size_t before_bytes = 0;
    for (int layer = 0; layer < 40; layer++) {
        const size_t bytes = width * size_t(1 + layer * 7 % 11);
        unsigned char *now = static_cast<unsigned char *>(host->Alloc(host, bytes));
        unsigned char *scratch = static_cast<unsigned char *>(host->Alloc(host, width / 2));
        CHECK(now != nullptr && scratch != nullptr);
        CHECK_EQ(reinterpret_cast<uintptr_t>(now) % 128, 0);
        memset(now, seed + layer, bytes);
        memset(scratch, 0xee, width / 2);
        for (size_t i = 0; before != nullptr && i < before_bytes; i += 97) {
            changed += before[i] != static_cast<unsigned char>(seed + layer - 1);
        }
        host->Free(host, scratch);
        host->Free(host, before);
        before = now;
        before_bytes = bytes;
    }
    if (kept != nullptr) {
        *kept = before;
    } else {
        host->Free(host, before);
    }
    return changed;
}

void the_struct_is_filled_in_for_old_and_new_hosts() {
    Device info = {7};
    Allocator<OldHost> old_memory;
    Allocator<NewHost> memory;
    OldHost *old_host = old_memory.attach(&info);
    NewHost *host = memory.attach(&info);
    CHECK(old_memory.ok() && memory.ok());
    CHECK_EQ(old_host->version, 1);
    CHECK_EQ(host->version, 18);
    CHECK(host->GetStats == nullptr);
    CHECK(host->Info(host) == &info && old_host->Info(old_host)->device == 7);
    CHECK(host->Alloc(host, 0) == nullptr && host->Reserve(host, 0) == nullptr);
    host->Free(host, nullptr);
    void *weights = host->Reserve(host, 5000);
    void *block = old_host->Alloc(old_host, 5000);
    CHECK(weights != nullptr && block != nullptr);
    host->Free(host, weights);
    old_host->Free(old_host, block);
    /* Not ours: refused, and nothing happens. */
    host->Free(host, &info);
    CHECK_EQ(pool(memory).bad_pointers, 1);
    CHECK_EQ(pool(memory).blocks, 0);
}

void later_runs_come_from_one_area() {
    Allocator<NewHost> memory;
    int changed = 0;
    for (int run = 0; run < 5; run++) {
        Frame frame(memory, 1);
        changed += net(memory.host(), 1000, static_cast<unsigned char>(run), nullptr);
    }
    CHECK_EQ(changed, 0);
    CHECK_EQ(frames(memory).recorded, 1);
    CHECK_EQ(frames(memory).served, 4 * 80);
    CHECK_EQ(pool(memory).blocks, 1);
    memory.settle();
    CHECK_EQ(pool(memory).blocks, 0);
}

void shapes_take_turns_in_the_same_memory() {
    Allocator<NewHost> memory;
    const size_t widths[] = {1000, 50000, 3000, 20000};
    uint64_t largest = 0;
    for (int run = 0; run < 12; run++) {
        const std::int64_t dims[] = {1, 3, std::int64_t(widths[run % 4])};
        Frame frame(memory, Signature().shape(dims, 3));
        CHECK_EQ(net(memory.host(), widths[run % 4], static_cast<unsigned char>(run), nullptr), 0);
        const uint64_t area = frames(memory).area_bytes;
        largest = area > largest ? area : largest;
        CHECK(frames(memory).instances <= 1);
    }
    CHECK_EQ(frames(memory).recorded, 4);
    CHECK_EQ(frames(memory).served, 8 * 80);
    CHECK(largest >= 50000 * 11);
    const std::int64_t a[] = {2, 3}, b[] = {3, 2};
    CHECK(std::uint64_t(Signature().shape(a, 2)) != std::uint64_t(Signature().shape(b, 2)));
    CHECK(std::uint64_t(Signature().shape(a, 2)) != std::uint64_t(Signature().shape(a, 1).shape(a + 1, 1)));
}

void shapes_that_do_not_come_back_are_hardly_recorded() {
    Allocator<NewHost> memory;
    for (int run = 0; run < 320; run++) {
        Frame frame(memory, Signature().add(std::uint64_t(run)));
        CHECK_EQ(net(memory.host(), size_t(500 + run), static_cast<unsigned char>(run), nullptr), 0);
    }
    CHECK(frames(memory).recorded >= 16 && frames(memory).recorded <= 16 + 320 / 16 + 1);
    /* Then one shape that does: its plan is made soon, and used. */
    const uint64_t before = frames(memory).served;
    for (int run = 0; run < 100; run++) {
        Frame frame(memory, 7777);
        CHECK_EQ(net(memory.host(), 800, static_cast<unsigned char>(run), nullptr), 0);
    }
    CHECK(frames(memory).served - before >= 80 * 80);
    /* More shapes in turn than plans are kept. */
    Allocator<NewHost> many;
    for (int run = 0; run < 1000; run++) {
        Frame frame(many, Signature().add(std::uint64_t(run % 24)));
        CHECK_EQ(net(many.host(), size_t(500 + run % 24), static_cast<unsigned char>(run), nullptr), 0);
    }
    CHECK(frames(many).recorded < 300);
    CHECK(frames(many).served > 100 * 80);
    CHECK_OK(arenite_pool_check(many.pool(), nullptr));
}

void an_output_outlives_its_frame() {
    Allocator<NewHost> memory;
    void *kept[3] = {nullptr, nullptr, nullptr};
    for (int run = 0; run < 3; run++) {
        Frame frame(memory, 1);
        CHECK_EQ(net(memory.host(), 1000, static_cast<unsigned char>(run), &kept[run]), 0);
    }
    for (int run = 0; run < 3; run++) {
        CHECK_EQ(static_cast<unsigned char *>(kept[run])[0], static_cast<unsigned char>(run + 39));
        memory.host()->Free(memory.host(), kept[run]);
    }
    CHECK_EQ(frames(memory).outside, 2);
    memory.settle();
    CHECK_EQ(pool(memory).blocks, 0);
}

void a_run_that_is_different_is_served_all_the_same() {
    Allocator<NewHost> memory;
    for (int run = 0; run < 6; run++) {
        Frame frame(memory, 1);
        CHECK_EQ(net(memory.host(), run % 2 == 0 ? 1000 : 1500, static_cast<unsigned char>(run), nullptr), 0);
    }
    CHECK(frames(memory).mismatched > 0);
    CHECK_OK(arenite_pool_check(memory.pool(), nullptr));
}

void runs_at_once_do_not_meet() {
    Allocator<NewHost> memory;
    std::vector<std::thread> threads;
    int changed[8] = {0};
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&memory, &changed, t] {
            for (int run = 0; run < 20; run++) {
                Frame frame(memory, std::uint64_t(t % 3));
                changed[t] += net(memory.host(), size_t(1000 + t % 3), static_cast<unsigned char>(16 * t + run), nullptr);
            }
        });
    }
    /* And one without frames. */
    CHECK_EQ(net(memory.host(), 777, 5, nullptr), 0);
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (int t = 0; t < 8; t++) {
        CHECK_EQ(changed[t], 0);
    }
    CHECK(frames(memory).served > 0);
    CHECK_OK(arenite_pool_check(memory.pool(), nullptr));
    memory.settle();
    CHECK_EQ(pool(memory).blocks, 0);
    CHECK_EQ(pool(memory).bad_pointers, 0);
}

void another_thread_frees_what_a_frame_allocated() {
    Allocator<NewHost> memory;
    for (int run = 0; run < 4; run++) {
        void *block[8];
        Frame frame(memory, 3);
        for (void *&b : block) {
            b = memory.host()->Alloc(memory.host(), 4000);
        }
        std::thread([&] {
            for (void *b : block) {
                memory.host()->Free(memory.host(), b);
            }
        }).join();
    }
    memory.settle();
    CHECK_EQ(pool(memory).blocks, 0);
    CHECK_EQ(pool(memory).bad_pointers, 0);
    CHECK_EQ(frames(memory).served, 24);
}

void frames_nest_and_memories_do_not_mix() {
    Allocator<NewHost> a, b;
    for (int run = 0; run < 3; run++) {
        Frame outer(a, 1);
        CHECK_EQ(net(a.host(), 1000, 1, nullptr), 0);
        {
            Frame inner(b, 1);
            CHECK_EQ(net(b.host(), 2000, 2, nullptr), 0);
            CHECK_EQ(net(a.host(), 1000, 3, nullptr), 0);
        }
    }
    CHECK_EQ(frames(a).served, 2 * 160);
    CHECK_EQ(frames(b).served, 2 * 80);
}

void a_pool_that_is_full_passes_on_to_the_system() {
    alignas(128) static unsigned char buffer[1 << 16];
    arenite_pool_options_t options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.source.kind = ARENITE_SOURCE_BUFFER;
    options.source.base = buffer;
    options.source.bytes = sizeof buffer;
    options.fallback = ARENITE_FALLBACK_SYSTEM;
    Allocator<NewHost> memory(&options);
    CHECK(memory.ok());
    for (int run = 0; run < 4; run++) {
        Frame frame(memory, 1);
        CHECK_EQ(net(memory.host(), 30000, static_cast<unsigned char>(run), nullptr), 0);
    }
    CHECK_EQ(pool(memory).fallback_blocks, 0);
}

} // namespace

int main() {
    RUN(the_struct_is_filled_in_for_old_and_new_hosts);
    RUN(later_runs_come_from_one_area);
    RUN(shapes_take_turns_in_the_same_memory);
    RUN(shapes_that_do_not_come_back_are_hardly_recorded);
    RUN(an_output_outlives_its_frame);
    RUN(a_run_that_is_different_is_served_all_the_same);
    RUN_THREADS(runs_at_once_do_not_meet);
    RUN_THREADS(another_thread_frees_what_a_frame_allocated);
    RUN(frames_nest_and_memories_do_not_mix);
    RUN(a_pool_that_is_full_passes_on_to_the_system);
    return DONE();
}
