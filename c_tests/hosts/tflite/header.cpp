/* arenite/tflite.hpp with a host's types that only look like TensorFlow Lite's: the behaviours of its planner tests.
 * Alignment 4, tensor i has 3 (i + 1) bytes unless a test says otherwise. */
#include <arenite/tflite.hpp>

#include <cstdarg>
#include <cstring>
#include <initializer_list>

#include "check.h"

namespace mock {

struct IntArray {
    int size;
    int data[8];
};
struct Tensor {
    union {
        char *raw;
        float *f;
    } data;
    int allocation_type;
    size_t bytes;
    bool is_variable;
};
struct Node {
    IntArray *inputs, *outputs, *temporaries;
};
struct Registration {
    uint64_t inplace_operator;
};
struct Context {
    void (*ReportError)(Context *, const char *, ...);
    char said[256];
};
enum Status { kMockOk, kMockError };

/* The functions of TFLite's two abstract classes, in its order. */
struct GraphInfo {
    virtual ~GraphInfo() {}
    virtual size_t num_tensors() const = 0;
    virtual Tensor *tensor(size_t i) = 0;
    virtual size_t num_execution_nodes() const = 0;
    virtual const Node &node(size_t i) const = 0;
    virtual const Registration &registration(size_t i) const = 0;
    virtual const std::vector<int> &inputs() const = 0;
    virtual const std::vector<int> &outputs() const = 0;
    virtual const std::vector<int> &variables() const = 0;
};
struct MemoryPlanner {
    virtual ~MemoryPlanner() {}
    virtual Status PlanAllocations() = 0;
    virtual Status ExecuteAllocations(int first, int last) = 0;
    virtual Status ResetAllocations() = 0;
    virtual Status ResetAllocationsAfter(int node) = 0;
    virtual Status ReleaseNonPersistentMemory() = 0;
    virtual Status AcquireNonPersistentMemory() = 0;
    virtual bool HasNonPersistentMemory() = 0;
    virtual void DumpDebugInfo(const std::vector<int> &plan) const = 0;
    virtual void GetAllocInfo(size_t *arena, size_t *persistent) const = 0;
};

} // namespace mock

struct Lite {
    using MemoryPlanner = mock::MemoryPlanner;
    using GraphInfo = mock::GraphInfo;
    using Context = mock::Context;
    using Status = mock::Status;
    static constexpr Status kOk = mock::kMockOk, kError = mock::kMockError;
};
constexpr Lite::Status Lite::kOk, Lite::kError;

using List = std::initializer_list<int>;

struct Op {
    mock::IntArray in, out, tmp;
    mock::Registration registration;
};

static mock::IntArray array(List l) {
    mock::IntArray a{};
    for (int i : l) a.data[a.size++] = i;
    return a;
}

static const uint64_t kShared = ARENITE_INPLACE_INPUT0, kR = ARENITE_INPLACE_INPUT0 | ARENITE_INPLACE_DATA_UNMODIFIED;

static Op op(List in, List out, List tmp = {}, uint64_t flags = kShared) {
    return Op{array(in), array(out), array(tmp), {flags}};
}

struct Model {
    std::vector<mock::Tensor> tensors;
    std::vector<Op> ops;
    std::vector<mock::Node> nodes;
    std::vector<int> inputs, outputs, variables;

    Model(size_t n, List in, std::vector<Op> all, List out) : tensors(n), ops(std::move(all)), inputs(in), outputs(out) {
        for (size_t i = 0; i < n; i++) {
            tensors[i].data.raw = nullptr;
            tensors[i].allocation_type = kAreniteArenaRw;
            tensors[i].bytes = 3 * (i + 1);
            tensors[i].is_variable = false;
        }
        for (Op &o : ops) nodes.push_back({&o.in, &o.out, &o.tmp});
    }
};

struct View final : mock::GraphInfo {
    Model *m;
    explicit View(Model *model) : m(model) {}
    size_t num_tensors() const override { return m->tensors.size(); }
    mock::Tensor *tensor(size_t i) override { return &m->tensors[i]; }
    size_t num_execution_nodes() const override { return m->nodes.size(); }
    const mock::Node &node(size_t i) const override { return m->nodes[i]; }
    const mock::Registration &registration(size_t i) const override { return m->ops[i].registration; }
    const std::vector<int> &inputs() const override { return m->inputs; }
    const std::vector<int> &outputs() const override { return m->outputs; }
    const std::vector<int> &variables() const override { return m->variables; }
};

static void report(mock::Context *context, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    std::vsnprintf(context->said, sizeof context->said, format, rest);
    va_end(rest);
}

struct Run {
    mock::Context context{report, {0}};
    Model *m;
    arenite::tflite::Planner<Lite> planner;
    explicit Run(Model *model, bool preserve = false)
        : m(model), planner(&context, std::unique_ptr<mock::GraphInfo>(new View(model)), preserve, 4) {
        CHECK(planner.PlanAllocations() == Lite::kOk);
    }
    void execute(int first, int last) { CHECK(planner.ExecuteAllocations(first, last) == Lite::kOk); }
    Run &all() {
        execute(0, static_cast<int>(m->nodes.size()) - 1);
        return *this;
    }
    /* Offsets from the lowest main-arena tensor; -1 is null. */
    void expect(std::initializer_list<std::pair<int, long>> places) {
        char *base = nullptr;
        for (mock::Tensor &t : m->tensors) {
            bool ours = t.allocation_type == static_cast<int>(kAreniteArenaRw) && t.data.raw != nullptr;
            if (ours && (base == nullptr || t.data.raw < base)) base = t.data.raw;
        }
        for (auto &p : places) {
            char *raw = m->tensors[static_cast<size_t>(p.first)].data.raw;
            CHECK_EQ(raw == nullptr ? -1 : raw - base, p.second);
        }
    }
};

static Model s_graph() { return Model(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, 5}, {3})}, {3}); }
static Model t_graph() { return Model(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4}, {5}), op({4}, {3})}, {3}); }

static void simple_graphs() {
    Model empty(0, {}, {}, {});
    Run none(&empty);
    none.execute(0, -1);
    CHECK(none.planner.HasNonPersistentMemory());

    Model two(12, {0, 10}, {op({0}, {}), op({10}, {})}, {5, 11});
    Run(&two).all().expect({{0, 0}, {10, 4}, {5, -1}, {11, -1}});
    Model one(3, {1}, {op({1}, {2})}, {2});
    Run(&one).all().expect({{1, 0}, {2, 8}});
    one = Model(3, {1}, {op({1}, {2})}, {2});
    one.tensors[1].bytes = 0;
    for (size_t i = 0; i < one.ops.size(); i++) one.nodes[i] = {&one.ops[i].in, &one.ops[i].out, &one.ops[i].tmp};
    Run(&one).all().expect({{1, -1}, {2, 0}});

    Model s = s_graph();
    Run run(&s);
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
    CHECK(run.planner.ResetAllocations() == Lite::kOk);
    for (mock::Tensor &t : s.tensors) t.bytes++;
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
    size_t arena = 0, persistent = 9;
    run.planner.GetAllocInfo(&arena, &persistent);
    CHECK(arena >= 61 && persistent == 0);
    Model optional(6, {0, -1, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, -1, 5}, {3})}, {-1, 3});
    Run(&optional).all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
}

static void temporaries_and_resets() {
    Model t = t_graph();
    Run run(&t);
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {3, 12}, {4, 32}, {2, 48}});
    CHECK(run.planner.ResetAllocationsAfter(0) == Lite::kOk);
    run.expect({{0, 0}, {1, 4}, {2, 48}, {3, -1}, {4, -1}, {5, -1}});
    t.tensors[4].bytes += 64;
    run.execute(1, 2);
    run.expect({{0, 0}, {1, 4}, {3, 12}, {5, 12}, {2, 48}, {4, 60}});

    Model p = t_graph();
    p.tensors[5].allocation_type = kAreniteArenaRwPersistent;
    Run kept(&p);
    kept.all().expect({{0, 0}, {1, 4}, {4, 12}, {2, 28}, {3, 28}});
    char *state = p.tensors[5].data.raw;
    CHECK(state != nullptr);
    std::memset(state, 0x5A, p.tensors[5].bytes);
    CHECK(kept.planner.ResetAllocationsAfter(0) == Lite::kOk);
    CHECK(p.tensors[5].data.raw == state && p.tensors[3].data.raw == nullptr);
    kept.execute(1, 2);
    CHECK(p.tensors[5].data.raw == state && state[17] == 0x5A);

    Model chained(8, {0}, {op({0}, {1}, {5}), op({1}, {2}, {6}), op({2}, {3}, {7})}, {3});
    Run(&chained).all();
    CHECK(chained.tensors[5].data.raw != nullptr);
    Model every(8, {0}, {op({0}, {1}, {5}), op({1}, {2}, {6}), op({2}, {3}, {7})}, {3});
    Run(&every, true).all();
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < i && i != 4; j++) {
            CHECK(j == 4 || every.tensors[i].data.raw != every.tensors[j].data.raw);
        }
    }
}

static void in_place() {
    Model g(6, {0, 1}, {op({0}, {2}), op({1}, {3}), op({2, 3}, {4}, {}, kR), op({4}, {5})}, {5});
    g.tensors[2].bytes = g.tensors[4].bytes = 24;
    Run(&g).all().expect({{2, 12}, {4, 12}, {3, 36}, {5, 36}});
    Model chain(9, {0, 1},
                {op({0}, {2}), op({2, 3}, {4}, {}, kR), op({4, 3}, {5}, {}, kR), op({5, 3}, {6}, {}, kR),
                 op({6, 3}, {7}, {}, kR), op({7}, {8})},
                {8});
    for (mock::Tensor &t : chain.tensors) t.bytes = 24;
    Run(&chain).all();
    for (size_t i : {4u, 5u, 6u, 7u}) CHECK(chain.tensors[i].data.raw == chain.tensors[2].data.raw);
    CHECK(chain.tensors[3].data.raw == nullptr);
    Model output(4, {0, 1}, {op({0}, {2}), op({2, 1}, {3}, {}, kR)}, {3});
    output.tensors[2].bytes = output.tensors[3].bytes = 24;
    Run(&output).all();
    CHECK(output.tensors[2].data.raw != output.tensors[3].data.raw);
}

static void sharing_and_what_forbids_it() {
    auto at = [](Model &m, size_t t) { return m.tensors[t].data.raw; };
    /* An input of the graph is never taken over, an intermediate that dies is. */
    Model chain(5, {0, 1}, {op({0}, {2}), op({2, 1}, {3}, {}, kR), op({3}, {4})}, {4});
    chain.tensors[2].bytes = chain.tensors[3].bytes = 24;
    Run(&chain).all();
    CHECK(at(chain, 2) == at(chain, 3));
    Model input(5, {0, 1}, {op({0, 1}, {2}, {}, kR), op({4}, {3})}, {3});
    input.tensors[0].bytes = input.tensors[2].bytes = 24;
    input.tensors[0].allocation_type = kAreniteDynamic;
    Run(&input).all();
    CHECK(at(input, 0) == nullptr && at(input, 2) != nullptr);
    /* Unmodified data alone does not say which input may be shared. */
    Model vague(4, {0}, {op({0}, {1}), op({1}, {2}, {}, ARENITE_INPLACE_DATA_UNMODIFIED), op({2}, {3})}, {3});
    vague.tensors[1].bytes = vague.tensors[2].bytes = 24;
    Run(&vague).all();
    CHECK(at(vague, 1) != at(vague, 2));
    /* ADD, RESHAPE, ADD: the reshape shares, the first ADD not with the graph's inputs, the last not as its output. */
    const uint64_t add = ARENITE_INPLACE_INPUT0 | ARENITE_INPLACE_INPUT1;
    Model mixed(5, {0, 1}, {op({0, 1}, {2}, {}, add), op({2}, {3}, {}, kR), op({3, 1}, {4}, {}, add)}, {4});
    for (mock::Tensor &t : mixed.tensors) t.bytes = 24;
    Run(&mixed).all();
    CHECK(at(mixed, 2) == at(mixed, 3) && at(mixed, 4) != at(mixed, 3));
    CHECK(at(mixed, 2) != at(mixed, 0) && at(mixed, 2) != at(mixed, 1));
    /* Two references to one tensor: both operands would be written over. A constant's partner may be. */
    Model twice(6, {0}, {op({0}, {1}), op({1, 1}, {2}, {}, add), op({3, 2}, {4}, {}, add), op({4}, {5})}, {5});
    for (mock::Tensor &t : twice.tensors) t.bytes = 24;
    twice.tensors[3].allocation_type = kAreniteMmapRo;
    Run(&twice).all();
    CHECK(at(twice, 1) != at(twice, 2) && at(twice, 2) == at(twice, 4));
    /* Only the input that the operator names. */
    Model second(5, {0}, {op({0}, {1}), op({0}, {2}), op({1, 2}, {3}, {}, ARENITE_INPLACE_INPUT1), op({3}, {4})}, {4});
    for (mock::Tensor &t : second.tensors) t.bytes = 24;
    Run(&second).all();
    CHECK(at(second, 3) == at(second, 2) && at(second, 3) != at(second, 1));
}

static void reuse_and_another_graph() {
    Model g(6, {0, -1}, {op({0}, {1}), op({1}, {2}), op({2, 0}, {4}, {5}), op({4, -1}, {3})}, {3});
    g.tensors[1].bytes = 40;
    Run run(&g);
    run.all().expect({{1, 4}, {2, 44}, {3, 4}, {5, 4}, {4, 24}});
    size_t arena = 0, persistent = 0;
    run.planner.GetAllocInfo(&arena, &persistent);
    CHECK(arena >= 53);
    /* The host changed its graph under the planner, as delegates do, and plans anew. */
    Model s = s_graph();
    Run other(&s);
    other.all();
    Model smaller(6, {0, 1}, {op({0, 1}, {3})}, {3});
    s = smaller;
    for (size_t i = 0; i < s.ops.size(); i++) s.nodes[i] = {&s.ops[i].in, &s.ops[i].out, &s.ops[i].tmp};
    CHECK(other.planner.PlanAllocations() == Lite::kOk);
    other.execute(0, 0);
    other.expect({{0, 0}, {1, 4}, {3, 12}});
}

static void kinds_and_memory() {
    Model v = t_graph();
    v.tensors[1].allocation_type = kAreniteArenaRwPersistent;
    v.tensors[1].is_variable = true;
    v.variables = {1};
    v.inputs = {0};
    Run(&v).all().expect({{0, 0}, {5, 4}, {3, 4}, {4, 24}, {2, 40}});
    Model d = t_graph();
    d.tensors[1].allocation_type = kAreniteDynamic;
    Run(&d).all().expect({{0, 0}, {1, -1}, {5, 4}, {3, 4}, {4, 24}, {2, 40}});
    Model far = s_graph();
    far.tensors[0].allocation_type = far.tensors[3].allocation_type = kAreniteNonCpu;
    Run(&far).all().expect({{0, -1}, {3, -1}});
    CHECK(far.tensors[2].data.raw != nullptr);

    Model t = t_graph();
    Run run(&t);
    CHECK(!run.planner.HasNonPersistentMemory());
    run.all();
    CHECK(run.planner.AcquireNonPersistentMemory() == Lite::kOk);
    CHECK(run.planner.ReleaseNonPersistentMemory() == Lite::kOk);
    CHECK(!run.planner.HasNonPersistentMemory());
    for (mock::Tensor &x : t.tensors) CHECK(x.data.raw == nullptr);
    CHECK(run.planner.AcquireNonPersistentMemory() == Lite::kOk);
    run.expect({{0, 0}, {1, 4}, {5, 12}, {3, 12}, {4, 32}, {2, 48}});
    run.planner.DumpDebugInfo({0, 1, 2});
    CHECK(run.planner.PlanAllocations() == Lite::kOk);
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {3, 12}, {4, 32}, {2, 48}});

    t.tensors[2].bytes = 30;
    run.all();
    CHECK(t.tensors[2].data.raw >= t.tensors[1].data.raw + 6);
    t.tensors[2].bytes = SIZE_MAX - 8;
    CHECK(run.planner.ExecuteAllocations(0, 2) == Lite::kError);
    CHECK(std::strncmp(run.context.said, "arenite: ", 9) == 0);
}

int main() {
    RUN(simple_graphs);
    RUN(temporaries_and_resets);
    RUN(in_place);
    RUN(sharing_and_what_forbids_it);
    RUN(reuse_and_another_graph);
    RUN(kinds_and_memory);
    return check_done();
}
