/* arenite/tflm.hpp as TensorFlow Lite Micro would call it, over types that only look like its own. */
#include "planner_types.h"

#include <algorithm>
#include <vector>

#include "check.h"

constexpr Micro::Status Micro::kOk, Micro::kError;

using Planner = arenite::tflm::Planner<Micro>;

struct Buffer {
    int size, first, last, offline;
};

alignas(64) static unsigned char scratch[65536];

static void add(mock::MicroMemoryPlanner *p, const std::vector<Buffer> &all) {
    for (const Buffer &b : all) {
        CHECK((b.offline < 0 ? p->AddBuffer(b.size, b.first, b.last) : p->AddBuffer(b.size, b.first, b.last, b.offline)) ==
              Micro::kOk);
    }
    CHECK_EQ(p->GetBufferCount(), all.size());
}

static std::vector<int> offsets(mock::MicroMemoryPlanner *p) {
    std::vector<int> out;
    for (int i = 0; i < p->GetBufferCount(); i++) {
        int at = -7;
        CHECK(p->GetOffsetForBuffer(i, &at) == Micro::kOk);
        out.push_back(at);
    }
    return out;
}

/* The host's greedy rule, written from its description: largest first, later added first, lowest gap. Buffers of 0 bytes
 * are left out: the host walks around them, which now and then lets its later choices come out better or worse. */
static size_t greedy(const std::vector<Buffer> &all) {
    std::vector<int> order, placed, at(all.size());
    size_t top = 0;
    for (int i = static_cast<int>(all.size()) - 1; i >= 0; i--) {
        if (all[i].size > 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const bool fa = all[a].offline >= 0, fb = all[b].offline >= 0;
        return fa != fb ? fa : !fa && all[a].size > all[b].size;
    });
    for (int i : order) {
        int place = 0;
        std::sort(placed.begin(), placed.end(), [&](int a, int b) { return at[a] < at[b]; });
        for (int o : placed) {
            if (all[o].first > all[i].last || all[i].first > all[o].last) continue;
            if (place + all[i].size <= at[o]) break;
            place = std::max(place, at[o] + all[o].size);
        }
        at[i] = all[i].offline >= 0 ? all[i].offline : place;
        placed.push_back(i);
        top = std::max(top, static_cast<size_t>(at[i] + all[i].size));
    }
    return top;
}

static void known_answers() {
    Planner p(1);
    CHECK(p.Init(scratch, sizeof scratch) == Micro::kOk);
    CHECK_EQ(p.GetMaximumMemorySize(), 0);
    add(&p, {{10, 0, 1, -1}, {20, 2, 3, -1}});
    CHECK(offsets(&p) == (std::vector<int>{0, 0}));
    CHECK_EQ(p.GetMaximumMemorySize(), 20);
    /* One object serves every model of an allocator. */
    CHECK(p.Init(scratch, sizeof scratch) == Micro::kOk);
    add(&p, {{10, 0, 1, -1}, {20, 1, 2, -1}, {30, 2, 3, -1}, {40, 3, 4, -1}, {50, 0, 1, -1}});
    CHECK_EQ(p.GetMaximumMemorySize(), 80); /* the host's rule takes 90 */
    CHECK(p.AddBuffer(50, 0, 4) == Micro::kOk);
    CHECK_EQ(p.GetMaximumMemorySize(), 140); /* planned anew with one more: 130 are alive together */
}

static void offline_offsets_stay() {
    Planner p;
    p.Init(scratch, sizeof scratch);
    /* In place: an output over its input. The third lives with both and has to go elsewhere. */
    add(&p, {{64, 0, 1, 32}, {64, 1, 2, 32}, {48, 0, 2, -1}, {16, 1, 1, 5}});
    const std::vector<int> at = offsets(&p);
    CHECK(at[0] == 32 && at[1] == 32 && at[3] == 5);
    CHECK(at[2] % 16 == 0 && at[2] >= 96);
    CHECK_EQ(p.GetMaximumMemorySize(), static_cast<size_t>(at[2]) + 48);
}

/* No two live buffers share bytes, never above the host's rule, and not a byte outside the scratch is touched. */
static void random_plans() {
    unsigned state = 2463534242u;
    auto below = [&](unsigned n) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return static_cast<int>(state % n);
    };
    int better = 0;
    for (int round = 0; round < 2000; round++) {
        std::vector<Buffer> all;
        for (int i = below(40); i >= 0; i--) {
            const int first = below(25);
            all.push_back({below(10) == 0 ? 0 : 16 * below(200), first, first + below(9), below(12) == 0 ? 16 * below(300) : -1});
        }
        std::fill(std::begin(scratch), std::end(scratch), static_cast<unsigned char>(0xA5));
        const size_t shift = static_cast<size_t>(below(32)), bytes = Planner::scratch_bytes(static_cast<int>(all.size()));
        Planner p;
        p.Init(scratch + 64 + shift, static_cast<int>(bytes));
        add(&p, all);
        const std::vector<int> at = offsets(&p);
        const size_t arena = p.GetMaximumMemorySize();
        CHECK(p.AddBuffer(16, 0, 0) == Micro::kError); /* the scratch is full to the byte */
        for (size_t k = 0; k < sizeof scratch; k++) {
            if (k < 64 + shift || k >= 64 + shift + bytes) CHECK_EQ(scratch[k], 0xA5);
        }
        /* The tensors are written over the scratch before the maximum is asked for. */
        std::fill(std::begin(scratch), std::end(scratch), static_cast<unsigned char>(0));
        CHECK_EQ(p.GetMaximumMemorySize(), arena);
        size_t top = 0;
        for (size_t i = 0; i < all.size(); i++) {
            if (all[i].size > 0) top = std::max(top, static_cast<size_t>(at[i] + all[i].size));
            if (all[i].offline >= 0) CHECK_EQ(at[i], all[i].offline);
            for (size_t j = 0; j < i; j++) {
                const Buffer &a = all[i], &b = all[j];
                const bool alive = a.first <= b.last && b.first <= a.last && a.size > 0 && b.size > 0;
                const bool both_given = a.offline >= 0 && b.offline >= 0;
                CHECK(!alive || both_given || at[i] + a.size <= at[j] || at[j] + b.size <= at[i]);
            }
        }
        CHECK_EQ(arena, top);
        CHECK(arena <= greedy(all));
        better += arena < greedy(all);
        if (check_failed > 10) break;
    }
    printf("2000 plans, %d smaller than the host's rule\n", better);
}

static void a_workspace_of_its_own() {
    static unsigned char own[2048];
    Planner p(own, sizeof own);
    p.Init(nullptr, 0);
    add(&p, {{160, 0, 1, -1}, {320, 1, 2, -1}});
    CHECK_EQ(p.GetMaximumMemorySize(), 480);
}

static void refused() {
    Planner p;
    int at = 77;
    CHECK(p.AddBuffer(16, 0, 0) == Micro::kError); /* not begun */
    CHECK(p.GetOffsetForBuffer(0, &at) == Micro::kError);
    p.Init(nullptr, 1000);
    CHECK(p.AddBuffer(16, 0, 0) == Micro::kError);
    p.Init(scratch, -1);
    CHECK(p.AddBuffer(16, 0, 0) == Micro::kError);
    p.Init(scratch, sizeof scratch);
    CHECK(p.AddBuffer(-1, 0, 0) == Micro::kError && p.AddBuffer(16, -1, 0) == Micro::kError);
    CHECK(p.AddBuffer(16, 2, 1) == Micro::kError && p.AddBuffer(16, 0, 0, -2) == Micro::kError);
    CHECK_EQ(p.GetBufferCount(), 0);
    CHECK(p.AddBuffer(INT_MAX, 0, 0) == Micro::kOk);
    CHECK(p.GetOffsetForBuffer(0, nullptr) == Micro::kError && p.GetOffsetForBuffer(1, &at) == Micro::kError);
    CHECK(p.GetOffsetForBuffer(-1, &at) == Micro::kError);
    CHECK(p.GetOffsetForBuffer(0, &at) == Micro::kOk && at == 0);
    at = 77;
    CHECK(p.AddBuffer(1, 0, 0) == Micro::kOk); /* together more than an int counts */
    CHECK(p.GetOffsetForBuffer(0, &at) == Micro::kError && at == 77);
    CHECK_EQ(p.GetMaximumMemorySize(), 0);
    Planner odd(100);
    odd.Init(scratch, sizeof scratch);
    CHECK(odd.AddBuffer(16, 0, 0) == Micro::kOk && odd.GetOffsetForBuffer(0, &at) == Micro::kError);
    CHECK_EQ(Planner::scratch_bytes(-5), Planner::scratch_bytes(0));
}

int main() {
    RUN(known_answers);
    RUN(offline_offsets_stay);
    RUN(random_plans);
    RUN(a_workspace_of_its_own);
    RUN(refused);
    printf("scratch for 40 buffers: %zu bytes; the host's greedy planner takes 1600\n", Planner::scratch_bytes(40));
    return DONE();
}
