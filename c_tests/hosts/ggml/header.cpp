/* The placement of ggml graphs, on a small engine with tensors, views and graphs like ggml's that computes what it is asked. */
#include "check.h"

#include <arenite/ggml.hpp>

#include <memory>
#include <vector>

namespace {

struct Tensor {
    size_t bytes = 0;
    Tensor *sources[3] = {nullptr, nullptr, nullptr};
    Tensor *view = nullptr;
    bool input = false, output = false, element_wise = false;
    unsigned char *data = nullptr;
    bool refuse = false;
};

struct Graph {
    std::vector<std::unique_ptr<Tensor>> all;
    std::vector<Tensor *> nodes;

    Tensor *leaf(size_t bytes, bool input = true) {
        all.emplace_back(new Tensor);
        all.back()->bytes = bytes;
        all.back()->input = input;
        return all.back().get();
    }
    Tensor *node(size_t bytes, Tensor *a, Tensor *b = nullptr, bool element_wise = false) {
        Tensor *t = leaf(bytes, false);
        t->sources[0] = a;
        t->sources[1] = b;
        t->element_wise = element_wise;
        nodes.push_back(t);
        return t;
    }
    Tensor *viewed(Tensor *of) {
        Tensor *t = node(of->bytes, of);
        t->view = of->view != nullptr ? of->view : of;
        return t;
    }
};

struct Engine {
    using Graph = ::Graph;
    using Tensor = ::Tensor;
    using Buffer = unsigned char *;
    static int count(Graph *graph) { return int(graph->nodes.size()); }
    static Tensor *node(Graph *graph, int i) { return graph->nodes[size_t(i)]; }
    static int sources() { return 3; }
    static Tensor *source(const Tensor *tensor, int k) { return tensor->sources[k]; }
    static Tensor *viewed(const Tensor *tensor) { return tensor->view; }
    static bool placed(const Tensor *tensor) { return tensor->data != nullptr; }
    static bool is_input(const Tensor *tensor) { return tensor->input; }
    static bool is_output(const Tensor *tensor) { return tensor->output; }
    static size_t bytes(const Tensor *tensor) { return tensor->bytes; }
    static bool writes_over(const Tensor *node, int k) {
        return node->element_wise && node->sources[k]->bytes == node->bytes;
    }
    static Buffer wrap(void *data, size_t) { return static_cast<unsigned char *>(data); }
    static void unwrap(Buffer) {}
    static bool bind(Buffer, Tensor *tensor, void *data) {
        CHECK_EQ(reinterpret_cast<uintptr_t>(data) % 128, 0);
        tensor->data = static_cast<unsigned char *>(data);
        return !tensor->refuse;
    }
    static bool bind_view(Tensor *tensor) {
        tensor->data = tensor->view->data;
        return tensor->data != nullptr;
    }
};

using Placement = arenite::ggml::Placement<Engine>;

/* What a node computes, from contents alone, so that a block written over too early shows. */
void compute(Tensor *t, unsigned salt) {
    if (t->view != nullptr) {
        return;
    }
    for (size_t i = 0; i < t->bytes; i++) {
        unsigned sum = salt + unsigned(i);
        for (Tensor *s : t->sources) {
            sum = s != nullptr ? sum * 31 + s->data[t->element_wise ? i % s->bytes : (i * 7) % s->bytes] : sum;
        }
        t->data[i] = static_cast<unsigned char>(sum);
    }
}

unsigned long long hash(const Graph &graph) {
    unsigned long long h = 7;
    for (const std::unique_ptr<Tensor> &t : graph.all) {
        for (size_t i = 0; t->output && i < t->bytes; i++) {
            h = h * 1099511628211ull + t->data[i];
        }
    }
    return h;
}

unsigned long long execute(Graph &graph) {
    for (const std::unique_ptr<Tensor> &t : graph.all) {
        if (t->input && t->data != nullptr) { /* an input that no node reads has no place */
            memset(t->data, 3 + int(t->bytes % 13), t->bytes);
        }
    }
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        /* In place over an input that is read with another index would be wrong, so only element-wise nodes may. */
        compute(graph.nodes[i], unsigned(i));
    }
    return hash(graph);
}

uint64_t seed = 88172645463325252ull;
size_t below(size_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return size_t(seed >> 11) % n;
}

void made(Graph &graph, uint64_t from) {
    seed = from * 2654435761ull + 1;
    std::vector<Tensor *> known;
    const size_t sizes[] = {1000, 1000, 3000, 4096, 10};
    for (int i = 0; i < 3; i++) {
        known.push_back(graph.leaf(sizes[below(5)]));
    }
    const size_t count = 5 + below(60);
    for (size_t i = 0; i < count; i++) {
        /* Mostly what is recent, sometimes what is old. */
        const auto pick = [&] { return known[below(4) == 0 ? below(known.size()) : known.size() - 1 - below(3)]; };
        Tensor *a = pick(), *b = below(2) == 0 ? pick() : nullptr;
        if (below(6) == 0) {
            known.push_back(graph.viewed(a));
        } else {
            const bool element_wise = below(2) == 0;
            known.push_back(graph.node(element_wise ? a->bytes : sizes[below(5)], a, b, element_wise));
        }
        known.back()->output = below(12) == 0;
    }
    known.back()->output = true;
}

void random_graphs_compute_what_they_do_with_memory_of_their_own() {
    size_t shared = 0, planned = 0;
    Placement placement;
    for (uint64_t g = 1; g <= 400; g++) {
        Graph apart, graph;
        made(apart, g);
        made(graph, g);
        std::vector<std::vector<unsigned char>> own;
        for (const std::unique_ptr<Tensor> &t : apart.all) {
            own.emplace_back(t->bytes);
            t->data = t->view == nullptr ? own.back().data() : t->view->data;
        }
        CHECK(placement.place(&graph));
        CHECK_EQ(execute(graph), execute(apart));
        CHECK(placement.bytes() >= placement.lower_bound());
        for (const std::unique_ptr<Tensor> &t : graph.all) {
            shared += t->view == nullptr ? (t->bytes + 127) / 128 * 128 : 0;
        }
        planned += size_t(placement.bytes());
    }
    /* Or nothing would have been tested. */
    CHECK(planned < shared / 2);
}

void the_same_graph_again_is_not_planned_again() {
    Placement placement;
    unsigned long long first = 0;
    for (int round = 0; round < 3; round++) {
        Graph graph;
        made(graph, 77);
        CHECK(placement.place(&graph));
        const unsigned long long h = execute(graph);
        CHECK(round == 0 || h == first);
        first = h;
    }
    CHECK_EQ(placement.plans(), 1);
    Graph other;
    made(other, 78);
    CHECK(placement.place(&other));
    CHECK_EQ(placement.plans(), 2);
}

void an_element_wise_chain_has_one_block() {
    Graph graph;
    Placement placement;
    Tensor *t = graph.leaf(5000);
    for (int i = 0; i < 10; i++) {
        t = graph.node(5000, t, nullptr, true);
    }
    CHECK(placement.place(&graph));
    CHECK_EQ(placement.bytes(), 5000);
    CHECK_EQ(placement.tensors(), 11);
    /* An output is not written over, and neither is a source that is read twice. */
    Graph kept;
    t = kept.leaf(5000);
    Tensor *middle = kept.node(5000, t, nullptr, true);
    middle->output = true;
    kept.node(5000, middle, middle, true);
    CHECK(placement.place(&kept));
    CHECK(kept.nodes[0]->data != kept.nodes[1]->data);
}

void what_has_memory_stays_where_it_is() {
    std::vector<unsigned char> weights(2000, 9);
    Graph graph;
    Placement placement;
    Tensor *w = graph.leaf(2000, false);
    w->data = weights.data();
    Tensor *x = graph.leaf(2000);
    graph.node(2000, w, x, true)->output = true;
    CHECK(placement.place(&graph));
    (void)execute(graph);
    CHECK(w->data == weights.data());
    CHECK_EQ(weights[1999], 9);
    CHECK_EQ(placement.tensors(), 2);
    Graph empty;
    CHECK(placement.place(&empty));
    CHECK_EQ(placement.bytes(), 0);
}

void failures_say_what_is_wrong() {
    arenite_pool_options_t options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.cap = 1 << 16;
    arenite_pool_t *pool = nullptr;
    CHECK_OK(arenite_pool_create(&options, &pool, nullptr));
    {
        Placement placement(pool);
        Graph large, small, refused;
        large.node(1 << 20, large.leaf(1 << 20));
        CHECK(!placement.place(&large));
        CHECK_EQ(placement.failure().needed, 2 << 20);
        small.node(1000, small.leaf(1000));
        CHECK(placement.place(&small));
        refused.node(1000, refused.leaf(1000))->refuse = true;
        CHECK(!placement.place(&refused));
        CHECK(strstr(placement.failure().message, "refused") != nullptr);
        Placement misaligned(pool, 3);
        Graph graph;
        graph.node(1000, graph.leaf(1000));
        CHECK(!misaligned.place(&graph));
        CHECK_EQ(misaligned.failure().status, ARENITE_ERR_ALIGNMENT);
    }
    CHECK_OK(arenite_pool_destroy(pool, nullptr));
}

} // namespace

int main() {
    RUN(random_graphs_compute_what_they_do_with_memory_of_their_own);
    RUN(the_same_graph_again_is_not_planned_again);
    RUN(an_element_wise_chain_has_one_block);
    RUN(what_has_memory_stays_where_it_is);
    RUN(failures_say_what_is_wrong);
    return DONE();
}
