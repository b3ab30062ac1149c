/* arenite/tflite.hpp in the place of ArenaPlanner and of its two arenas: fit, growth, release, who is told, what fails. */
#include "planner_model.hpp"

#include <stdlib.h>

struct Row {
    size_t bytes;
    int first, last;
};

/* Tensors with these lives: tensor i is written by node `first` and read by node `last`. */
static void lives(Model *m, int nodes, const std::vector<Row> &rows) {
    std::vector<Op> ops;
    for (int n = 0; n < nodes; n++) ops.push_back(op({}, {}, {}, 0));
    for (size_t i = 0; i < rows.size(); i++) {
        mock::IntArray &out = ops[static_cast<size_t>(rows[i].first)].out, &in = ops[static_cast<size_t>(rows[i].last)].in;
        out.data[out.size++] = static_cast<int>(i);
        if (rows[i].last > rows[i].first) in.data[in.size++] = static_cast<int>(i);
        m->tensors[i].bytes = rows[i].bytes;
    }
    m->set(std::move(ops));
}

static void gaps_in_time_and_place() {
    Model m(6, {}, {}, {});
    /* The last is read by nobody and so kept, which is the same: it is written by the last node. */
    lives(&m, 7, {{2047, 1, 3}, {2047, 2, 5}, {2047, 3, 6}, {2047, 5, 6}, {1023, 4, 6}, {1023, 6, 6}});
    Run run(&m, false, 32);
    run.all().expect({{0, 0}, {1, 2048}, {2, 4096}, {3, 0}, {4, 6144}, {5, 2048}});
    /* Node by node the small one comes before the fourth, and takes its place. */
    Run steps(&m, false, 32);
    for (int n = 0; n < 7; n++) steps.execute(n, n);
    steps.expect({{0, 0}, {1, 2048}, {2, 4096}, {4, 0}, {3, 6144}, {5, 1024}});
}

static void tensors_without_bytes_take_no_place() {
    Model m(4, {}, {}, {});
    lives(&m, 5, {{2047, 0, 4}, {0, 1, 2}, {1023, 1, 2}, {2047, 3, 4}});
    Run run(&m, false, 32);
    for (int n = 0; n < 5; n++) run.execute(n, n);
    run.expect({{0, 0}, {1, -1}, {2, 2048}, {3, 2048}});
}

static void memory_is_taken_only_when_there_is_too_little() {
    Model m(3, {}, {}, {});
    lives(&m, 2, {{2047, 0, 1}, {2047, 0, 1}, {2047, 0, 1}});
    Run run(&m, false, 32);
    run.all().expect({{0, 0}, {1, 2048}, {2, 4096}});
    const intptr_t base = run.planner.BasePointer(kAreniteArenaRw);
    const size_t held = run.arena();
    CHECK(base != 0 && held >= 6143);
    CHECK(run.planner.ResetAllocations() == Lite::kOk);
    m.bytes({0, 1, 2}, 1023);
    run.all().expect({{0, 0}, {1, 1024}, {2, 2048}});
    CHECK(run.planner.BasePointer(kAreniteArenaRw) == base && run.arena() == held);
    CHECK(run.planner.ResetAllocations() == Lite::kOk);
    m.bytes({0, 1, 2}, 4095);
    run.all().expect({{0, 0}, {1, 4096}, {2, 8192}});
    CHECK(run.arena() >= 12287);
}

static void what_has_ended_makes_room() {
    Model m(5, {}, {}, {});
    lives(&m, 6, {{2047, 0, 2}, {2047, 1, 2}, {2047, 2, 3}, {13, 4, 5}, {2047, 5, 5}});
    Run run(&m, false, 32);
    /* Closed intervals: the third lives at node 2, as the first two do. */
    run.execute(0, 2).expect({{0, 0}, {1, 2048}, {2, 4096}});
    run.execute(3, 4).expect({{3, 0}});
    run.execute(5, 5).expect({{4, 32}});
}

static void contents_survive_growth() {
    Model m(3, {0}, {op({0}, {1}), op({1, 0}, {2})}, {2});
    m.bytes({0, 1}, 64).bytes({2}, 1 << 20);
    Run run(&m);
    run.execute(0, 0);
    std::memset(m.at(0), 0x11, 64);
    std::memset(m.at(1), 0x22, 64);
    run.execute(1, 1);
    CHECK(m.at(0)[63] == 0x11 && m.at(1)[63] == 0x22 && run.arena() >= (1u << 20));
}

static void released_and_taken_again() {
    Model m(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4}, {5}), op({4}, {3})}, {3});
    Run run(&m);
    run.all();
    CHECK(run.planner.AcquireNonPersistentMemory() == Lite::kOk && run.planner.AcquireNonPersistentMemory() == Lite::kOk);
    CHECK(run.planner.HasNonPersistentMemory());
    CHECK(run.planner.ReleaseNonPersistentMemory() == Lite::kOk);
    CHECK(!run.planner.HasNonPersistentMemory());
    CHECK(run.planner.BasePointer(kAreniteArenaRw) == 0 && run.arena() == 0);
    for (int t = 0; t < 6; t++) CHECK(m.at(t) == nullptr);
    CHECK(run.planner.AcquireNonPersistentMemory() == Lite::kOk && run.planner.HasNonPersistentMemory());
    run.expect({{0, 0}, {1, 4}, {5, 12}, {3, 12}, {4, 32}, {2, 48}});
    /* Released, then another graph. */
    CHECK(run.planner.ReleaseNonPersistentMemory() == Lite::kOk);
    m.set({op({0, 1}, {3})});
    CHECK(run.planner.PlanAllocations() == Lite::kOk);
    run.all().expect({{0, 0}, {1, 4}, {3, 12}});
    CHECK(run.planner.AcquireNonPersistentMemory() == Lite::kOk && run.planner.HasNonPersistentMemory());
    CHECK(run.planner.ReleaseNonPersistentMemory() == Lite::kOk);
    CHECK(run.planner.AcquireNonPersistentMemory() == Lite::kOk);
    run.expect({{0, 0}, {1, 4}, {3, 12}});
}

/* The old memory is there until the new plan has some, and not for longer. */
static void planned_anew() {
    mock::events() = mock::Events();
    Model m(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4}, {5}), op({4}, {3})}, {3});
    {
        Run run(&m);
        run.all();
        std::memset(m.at(0), 0x33, 3);
        CHECK(run.planner.PlanAllocations() == Lite::kOk);
        CHECK(m.at(0)[2] == 0x33);
        run.all();
        CHECK(run.planner.PlanAllocations() == Lite::kOk);
        CHECK(run.planner.ReleaseNonPersistentMemory() == Lite::kOk);
        for (int t = 0; t < 6; t++) CHECK(m.at(t) == nullptr);
        CHECK_EQ(mock::events().held, 0);
        run.all().expect({{0, 0}, {1, 4}, {5, 12}, {3, 12}, {4, 32}, {2, 48}});
    }
    CHECK_EQ(mock::events().held, 0);
}

static void the_profiler_is_told() {
    Model m(3, {1}, {op({1}, {2})}, {2});
    mock::events() = mock::Events();
    {
        Run run(&m);
        run.all();
        CHECK(mock::events().taken == 1 && mock::events().given == 0); /* the persistent arena is empty */
        CHECK_EQ(mock::events().held, run.arena());
        m.bytes({2}, 100000);
        CHECK(run.planner.ResetAllocations() == Lite::kOk);
        run.all();
        CHECK(mock::events().taken == 2 && mock::events().given == 1);
    }
    CHECK(mock::events().taken == 2 && mock::events().given == 2 && mock::events().held == 0);
}

/* As TfLiteAllocator. */
struct Allocator {
    void *data;
    void *(*allocate)(void *, size_t, size_t);
    void *(*reallocate)(void *, void *, size_t, size_t, size_t);
    void (*deallocate)(void *, void *, size_t, size_t);
};
struct Counts {
    int taken, given;
    size_t held;
    bool empty;
};

static void *take(void *data, size_t bytes, size_t alignment) {
    Counts *c = static_cast<Counts *>(data);
    if (c->empty) return nullptr;
    c->taken++;
    c->held += bytes;
    return ::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void give(void *data, void *block, size_t bytes, size_t) {
    Counts *c = static_cast<Counts *>(data);
    c->given++;
    c->held -= bytes;
    ::free(block);
}

static void memory_of_the_hosts_allocator() {
    Counts counts = {0, 0, 0, false};
    Allocator allocator = {&counts, take, nullptr, give};
    mock::Context context = {report, {0}};
    Model m(6, {0}, {op({0}, {1}), op({1}, {2})}, {2});
    m.kind({1}, kAreniteArenaRwPersistent);
    {
        std::unique_ptr<mock::GraphInfo> view(new View(&m));
        arenite::tflite::Planner<Lite> planner(&context, std::move(view), false, 64, 0, &allocator);
        CHECK(planner.PlanAllocations() == Lite::kOk && planner.ExecuteAllocations(0, 1) == Lite::kOk);
        size_t main = 0, persistent = 0;
        planner.GetAllocInfo(&main, &persistent);
        CHECK(counts.taken == 2 && counts.held >= main + persistent && m.at(0) != nullptr);
        CHECK_EQ(reinterpret_cast<uintptr_t>(m.at(0)) % 64, 0);
        /* No more memory: an error, and the old addresses stay. */
        counts.empty = true;
        char *kept = m.at(1);
        m.bytes({2}, 1 << 20);
        CHECK(planner.ExecuteAllocations(1, 1) == Lite::kError && m.at(1) == kept);
        CHECK(std::strncmp(context.said, "arenite: ", 9) == 0);
        counts.empty = false;
        CHECK(planner.ExecuteAllocations(1, 1) == Lite::kOk);
    }
    CHECK(counts.taken == counts.given && counts.held == 0);
    std::unique_ptr<mock::GraphInfo> view(new View(&m));
    arenite::tflite::Planner<Lite> planner(&context, std::move(view), false, 64, 0, static_cast<Allocator *>(nullptr));
    CHECK(planner.PlanAllocations() == Lite::kOk && planner.ExecuteAllocations(0, 1) == Lite::kOk);
    CHECK(m.at(0) != nullptr);
}

/* TFLite puts a tensor that grew over live ones here. */
static void growth_without_a_reset() {
    Model m(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, 5}, {3})}, {3});
    Run run(&m);
    run.all();
    m.bytes({2}, 30);
    run.all();
    for (int t : {0, 1, 4, 5}) {
        const size_t bytes = m.tensors[static_cast<size_t>(t)].bytes;
        CHECK(m.at(2) + 30 <= m.at(t) || m.at(t) + bytes <= m.at(2));
    }
}

static void refused() {
    Model m(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, 5}, {3})}, {3});
    mock::Context context = {report, {0}};
    arenite::tflite::Planner<Lite> early(&context, std::unique_ptr<mock::GraphInfo>(new View(&m)), false, 4);
    CHECK(early.ExecuteAllocations(0, 2) == Lite::kError && early.AcquireNonPersistentMemory() == Lite::kError);
    CHECK(early.ResetAllocations() == Lite::kOk && early.ResetAllocationsAfter(0) == Lite::kOk);
    CHECK(early.ReleaseNonPersistentMemory() == Lite::kOk && !early.HasNonPersistentMemory());
    CHECK_EQ(early.BasePointer(kAreniteArenaRw), 0);
    Run run(&m);
    run.all();
    char *kept = m.at(2);
    const intptr_t base = run.planner.BasePointer(kAreniteArenaRw);
    m.bytes({2}, SIZE_MAX - 8);
    CHECK(run.planner.ExecuteAllocations(0, 2) == Lite::kError);
    CHECK(std::strncmp(run.context.said, "arenite: ", 9) == 0);
    CHECK(m.at(2) == kept && run.planner.BasePointer(kAreniteArenaRw) == base && run.planner.HasNonPersistentMemory());
    m.bytes({2}, 9);
    run.all();
    m.variables = {-1};
    CHECK(run.planner.PlanAllocations() == Lite::kError);
    m.variables.clear();
    m.set({op({0, 17}, {2})});
    CHECK(run.planner.PlanAllocations() == Lite::kError);
    for (int alignment : {0, 3, -4, 1 << 20}) {
        arenite::tflite::Planner<Lite> odd(&context, std::unique_ptr<mock::GraphInfo>(new View(&m)), false, alignment);
        CHECK(alignment == 0 || odd.PlanAllocations() == Lite::kError);
    }
    /* A host without a way to say it. */
    arenite::tflite::Planner<Lite> silent(nullptr, std::unique_ptr<mock::GraphInfo>(new View(&m)), false, 4);
    CHECK(silent.PlanAllocations() == Lite::kError);
}

static void it_tells_about_itself() {
    Model m(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, 5}, {3})}, {3});
    Run run(&m);
    run.planner.DumpDebugInfo({});
    run.all();
    run.planner.DumpDebugInfo({0, 1, 2}); /* on standard error */
    size_t main = 0, persistent = 1;
    run.planner.GetAllocInfo(&main, &persistent);
    CHECK(main >= 60 && persistent == 0);
}

int main() {
    RUN(gaps_in_time_and_place);
    RUN(tensors_without_bytes_take_no_place);
    RUN(memory_is_taken_only_when_there_is_too_little);
    RUN(what_has_ended_makes_room);
    RUN(contents_survive_growth);
    RUN(released_and_taken_again);
    RUN(planned_anew);
    RUN(the_profiler_is_told);
    RUN(memory_of_the_hosts_allocator);
    RUN(growth_without_a_reset);
    RUN(refused);
    RUN(it_tells_about_itself);
    return check_done();
}
