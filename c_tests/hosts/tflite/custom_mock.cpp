/* arenite/tflite_custom.hpp with an interpreter that only looks like TensorFlow Lite's C++ one, and that refuses what the
 * real one refuses. */
#include <arenite/tflite_custom.hpp>

#include <map>

#include "check.h"

namespace mock {

struct IntArray {
    int size;
    int data[4];
};
struct Tensor {
    int allocation_type;
    size_t bytes;
    bool is_variable;
    char *data;
};
struct Node {
    IntArray *inputs, *outputs;
};
struct Registration {
    uint64_t inplace_operator;
};
struct Allocation {
    void *data;
    size_t bytes;
};

/* A chain of operators over `sizes`; in(0) -> 1 -> 2 ..., operator k also reads a constant. */
class Interpreter {
  public:
    std::vector<Tensor> tensors;
    std::vector<IntArray> lists;
    std::vector<std::pair<Node, Registration>> nodes;
    std::vector<int> plan, in, out, none;
    std::map<int, Allocation> custom;
    std::vector<size_t> real; /* found out while allocating */
    int allocated = 0, released = 0, dynamic_from = -1;
    bool broken = false;

    Interpreter(const std::vector<size_t> &sizes, uint64_t inplace) : real(sizes) {
        const int n = static_cast<int>(sizes.size());
        for (size_t s : sizes) tensors.push_back({static_cast<int>(kAreniteArenaRw), s, false, nullptr});
        tensors.push_back({static_cast<int>(kAreniteMmapRo), 12, false, nullptr});
        lists.reserve(static_cast<size_t>(2 * n));
        for (int k = 0; k + 1 < n; k++) {
            lists.push_back({2, {k, n, 0, 0}});
            lists.push_back({1, {k + 1, 0, 0, 0}});
            nodes.push_back({Node{&lists[lists.size() - 2], &lists.back()}, Registration{inplace}});
            plan.push_back(k);
        }
        in = {0};
        out = {n - 1};
    }
    Interpreter(const Interpreter &) = delete;
    Interpreter &operator=(const Interpreter &) = delete;

    size_t tensors_size() const { return tensors.size(); }
    Tensor *tensor(int t) { return &tensors[static_cast<size_t>(t)]; }
    const std::vector<int> &execution_plan() const { return plan; }
    const std::pair<Node, Registration> *node_and_registration(int n) const { return &nodes[static_cast<size_t>(n)]; }
    const std::vector<int> &inputs() const { return in; }
    const std::vector<int> &outputs() const { return out; }
    int SetCustomAllocationForTensor(int t, const Allocation &a, int64_t) {
        Tensor &x = tensors[static_cast<size_t>(t)];
        const bool may = x.allocation_type == static_cast<int>(kAreniteArenaRw) || x.allocation_type == static_cast<int>(kAreniteCustom);
        if (!may || a.data == nullptr || reinterpret_cast<uintptr_t>(a.data) % 64 != 0) return 1;
        custom[t] = a;
        x.allocation_type = static_cast<int>(kAreniteCustom);
        x.data = static_cast<char *>(a.data);
        return 0;
    }
    int AllocateTensors() {
        allocated++;
        for (size_t t = 0; t < real.size(); t++) {
            tensors[t].bytes = real[t];
            if (dynamic_from >= 0 && static_cast<int>(t) == dynamic_from) {
                tensors[t].allocation_type = static_cast<int>(kAreniteDynamic);
            }
        }
        for (auto &c : custom) {
            if (c.second.bytes < tensors[static_cast<size_t>(c.first)].bytes) return 1;
        }
        return broken ? 1 : 0;
    }
    int ReleaseNonPersistentMemory() {
        released++;
        return 0;
    }
    /* Every tensor is its input plus one; a byte of it is enough. In place where the planner said so. */
    bool Invoke() {
        for (size_t t = 0; t < real.size(); t++) {
            if (tensors[t].data == nullptr) return false;
        }
        std::memset(tensors[0].data, 1, tensors[0].bytes);
        for (size_t t = 1; t < real.size(); t++) {
            const char v = static_cast<char>(tensors[t - 1].data[tensors[t - 1].bytes - 1] + 1);
            std::memset(tensors[t].data, v, tensors[t].bytes);
        }
        const Tensor &last = tensors[real.size() - 1];
        return last.data[0] == static_cast<char>(real.size()) && tensors[0].data[0] == 1;
    }
};

} // namespace mock

using Host = arenite::tflite::InterpreterHost<mock::Interpreter>;
using Memory = arenite::tflite::CustomAllocations<Host>;

static void a_chain_runs_in_our_memory() {
    mock::Interpreter i({1000, 5000, 300, 5000, 300, 64}, 0);
    Host host(&i);
    Memory memory(&host);
    CHECK(memory.Apply());
    CHECK_TEXT(memory.message(), "");
    CHECK_EQ(memory.bound_tensors(), 6);
    CHECK(i.released >= 1);
    CHECK(memory.arena_bytes() >= memory.lower_bound() && memory.arena_bytes() < memory.total_bytes());
    for (size_t t = 0; t < 6; t++) CHECK_EQ(reinterpret_cast<uintptr_t>(i.tensors[t].data) % 128, 0);
    CHECK(i.tensors[1].data == i.tensors[3].data); /* 1 ends before 3 begins */
    CHECK(i.Invoke());
    /* Grown and shrunk, as by ResizeInputTensor. */
    for (size_t factor : {3u, 1u, 7u}) {
        for (size_t &s : i.real) s *= factor;
        CHECK(memory.Apply());
        CHECK(i.Invoke());
    }
}

static void sharing_is_the_operators_choice() {
    mock::Interpreter i({256, 4096, 4096, 4096, 4096, 64}, ARENITE_INPLACE_INPUT0);
    Host host(&i);
    Memory memory(&host);
    CHECK(memory.Apply() && i.Invoke());
    CHECK(i.tensors[1].data == i.tensors[2].data && i.tensors[2].data == i.tensors[4].data);
    CHECK_EQ(memory.arena_bytes(), 256 + 4096 + 64);
    arenite::tflite::CustomOptions options;
    options.flags = ARENITE_GRAPH_NO_IN_PLACE;
    mock::Interpreter other({256, 4096, 4096, 4096, 4096, 64}, ARENITE_INPLACE_INPUT0);
    Host other_host(&other);
    Memory apart(&other_host, options);
    CHECK(apart.Apply() && other.Invoke());
    CHECK(other.tensors[1].data != other.tensors[2].data);
}

static void a_twin_tells_the_sizes() {
    /* What the file says is wrong, and found out while allocating. */
    mock::Interpreter twin({8, 8, 8, 8}, 0), i({8, 8, 8, 8}, 0);
    twin.real = i.real = {800, 8000, 80, 8};
    Host twin_host(&twin), host(&i);
    Memory memory(&host);
    CHECK(memory.Learn(&twin_host));
    CHECK_EQ(i.allocated, 0);
    CHECK(memory.Apply());
    CHECK_EQ(i.allocated, 1);
    CHECK(i.Invoke());
}

static void dynamic_tensors_stay() {
    mock::Interpreter i({100, 200, 300, 400, 500}, 0);
    i.dynamic_from = 2;
    Host host(&i);
    Memory memory(&host);
    CHECK(memory.Apply());
    CHECK_EQ(memory.bound_tensors(), 2);
    CHECK(i.tensors[0].data != nullptr && i.tensors[1].data != nullptr && i.tensors[2].data == nullptr && i.tensors[3].data == nullptr);
}

static void refused() {
    mock::Interpreter i({100, 200}, 0);
    i.broken = true;
    Host host(&i);
    Memory memory(&host);
    CHECK(!memory.Apply() && std::strlen(memory.message()) > 0);
    mock::Interpreter huge({SIZE_MAX - 70, SIZE_MAX - 70}, 0);
    Host huge_host(&huge);
    Memory too_much(&huge_host);
    CHECK(!too_much.Apply() && huge.custom.empty());
    printf("%s\n", too_much.message());
    arenite::tflite::CustomOptions odd;
    odd.alignment = 96;
    mock::Interpreter fine({100, 200}, 0);
    Host fine_host(&fine);
    Memory misaligned(&fine_host, odd);
    CHECK(!misaligned.Apply() && fine.custom.empty());
    printf("%s\n", misaligned.message());
}

int main() {
    RUN(a_chain_runs_in_our_memory);
    RUN(sharing_is_the_operators_choice);
    RUN(a_twin_tells_the_sizes);
    RUN(dynamic_tensors_stay);
    RUN(refused);
    return DONE();
}
