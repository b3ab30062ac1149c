/* Graphs of types that only look like TensorFlow Lite's, for the tests of arenite/tflite.hpp. As in TFLite's own
 * planner tests: alignment 4, tensor i has 3 (i + 1) bytes unless a test says otherwise, and an operator may write its
 * first output over its first input unless a test says otherwise. */
#ifndef PLANNER_MODEL_HPP
#define PLANNER_MODEL_HPP

#include <arenite/tflite.hpp>

#include <cstdarg>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "check.h"
#include "planner_types.hpp"

namespace mock {

/* The profiler's events: how often memory was taken and given back, and the bytes held. */
struct Events {
    int taken, given;
    long long held;
};
inline Events &events() {
    static Events all{};
    return all;
}

} // namespace mock

struct Lite {
    using MemoryPlanner = mock::MemoryPlanner;
    using GraphInfo = mock::GraphInfo;
    using Context = mock::Context;
    using Status = mock::Status;
    static constexpr Status kOk = mock::kMockOk, kError = mock::kMockError;
    static constexpr int kNullBufferHandle = -1;
    static void OnArenaAlloc(int, int, size_t bytes) {
        mock::events().taken++;
        mock::events().held += static_cast<long long>(bytes);
    }
    static void OnArenaDealloc(int, int, size_t bytes) {
        mock::events().given++;
        mock::events().held -= static_cast<long long>(bytes);
    }
};
/* Before C++17 a constant that is used as an object has to be defined somewhere. */
constexpr Lite::Status Lite::kOk, Lite::kError;
constexpr int Lite::kNullBufferHandle;

using List = std::initializer_list<int>;

struct Op {
    mock::IntArray in, out, tmp;
    mock::Registration registration;
};

static const uint64_t kShared = ARENITE_INPLACE_INPUT0, kSecond = ARENITE_INPLACE_INPUT1, kAny = kShared | kSecond;
/* A view: RESHAPE and the like. */
static const uint64_t kR = ARENITE_INPLACE_INPUT0 | ARENITE_INPLACE_DATA_UNMODIFIED;

static mock::IntArray array(List l) {
    mock::IntArray a{};
    for (int i : l) a.data[a.size++] = i;
    return a;
}

static Op op(List in, List out, List tmp = {}, uint64_t flags = kShared) {
    return Op{array(in), array(out), array(tmp), {flags}};
}

class Model {
  public:
    std::vector<mock::Tensor> tensors;
    std::vector<int> inputs, outputs, variables;

    Model(size_t count, List in, std::vector<Op> ops, List out) : inputs(in), outputs(out) {
        grow(count);
        set(std::move(ops));
    }
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    void grow(size_t count) {
        for (size_t i = tensors.size(); i < count; i++) {
            tensors.push_back(mock::Tensor());
            tensors[i].allocation_type = kAreniteArenaRw;
            tensors[i].bytes = 3 * (i + 1);
            tensors[i].buffer_handle = -1;
        }
    }
    void set(std::vector<Op> ops) {
        ops_ = std::move(ops);
        nodes_.clear();
        for (Op &o : ops_) nodes_.push_back({&o.in, &o.out, &o.tmp});
    }
    Model &bytes(List which, size_t n) {
        for (int t : which) tensors[static_cast<size_t>(t)].bytes = n;
        return *this;
    }
    Model &kind(List which, uint32_t allocation_type) {
        for (int t : which) tensors[static_cast<size_t>(t)].allocation_type = static_cast<int>(allocation_type);
        return *this;
    }
    char *at(int t) const { return tensors[static_cast<size_t>(t)].data.raw; }
    const std::vector<mock::Node> &nodes() const { return nodes_; }
    const Op &operation(size_t i) const { return ops_[i]; }

  private:
    std::vector<Op> ops_;
    std::vector<mock::Node> nodes_;
};

struct View final : mock::GraphInfo {
    Model *m;
    explicit View(Model *model) : m(model) {}
    size_t num_tensors() const override { return m->tensors.size(); }
    mock::Tensor *tensor(size_t i) override { return &m->tensors[i]; }
    mock::Tensor *tensors() override { return m->tensors.data(); }
    size_t num_execution_nodes() const override { return m->nodes().size(); }
    size_t num_total_nodes() const override { return m->nodes().size(); }
    const mock::Node &node(size_t i) const override { return m->nodes()[i]; }
    const mock::Registration &registration(size_t i) const override { return m->operation(i).registration; }
    size_t node_index(size_t i) const override { return i; }
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

/* A planner for a graph. */
class Run {
  public:
    mock::Context context{report, {0}};
    Model *m;
    arenite::tflite::Planner<Lite> planner;

    explicit Run(Model *model, bool preserve = false, int alignment = 4)
        : m(model), planner(&context, std::unique_ptr<mock::GraphInfo>(new View(model)), preserve, alignment) {
        CHECK(planner.ResetAllocations() == Lite::kOk);
        CHECK(planner.PlanAllocations() == Lite::kOk);
    }
    Run &execute(int first, int last) {
        CHECK(planner.ExecuteAllocations(first, last) == Lite::kOk);
        return *this;
    }
    Run &all() { return execute(0, static_cast<int>(m->nodes().size()) - 1); }

    /* The offset in the arena of the tensor's kind; -1 where the tensor has no address. */
    long long offset(int t) const {
        const mock::Tensor &tensor = m->tensors[static_cast<size_t>(t)];
        if (tensor.data.raw == nullptr) return -1;
        return reinterpret_cast<intptr_t>(tensor.data.raw) - planner.BasePointer(tensor.allocation_type);
    }
    /* The first aligned offset behind a tensor. */
    long long behind(int t) const {
        return (offset(t) + static_cast<long long>(m->tensors[static_cast<size_t>(t)].bytes) + 3) / 4 * 4;
    }
    Run &expect(std::initializer_list<std::pair<int, int>> places) {
        for (auto &p : places) CHECK_EQ(offset(p.first), static_cast<long long>(p.second));
        return *this;
    }
    /* Bytes of the main arena. */
    size_t arena() const {
        size_t main = 0, persistent = 0;
        planner.GetAllocInfo(&main, &persistent);
        return main;
    }
};

#endif
