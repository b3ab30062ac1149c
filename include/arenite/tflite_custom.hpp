/*
 * arenite's plan in a TensorFlow Lite runtime whose planner cannot be replaced: every tensor of a loaded interpreter is
 * bound to its planned address through SetCustomAllocationForTensor.
 *
 * With the C++ interface:
 *
 *   #include "tensorflow/lite/interpreter.h"
 *   #include <arenite/tflite_custom.hpp>
 *
 *   arenite::tflite::InterpreterHost<tflite::Interpreter> host(interpreter.get());
 *   arenite::tflite::CustomAllocations<decltype(host)> memory(&host);
 *   if (!memory.Apply()) fprintf(stderr, "%s\n", memory.message());       // instead of interpreter->AllocateTensors()
 *
 * With the C interface: <arenite/tflite_custom_c.hpp>.
 *
 * Apply again after ResizeInputTensor, in place of AllocateTensors. Dynamic tensors and what follows them, variables,
 * weights unpacked by nodes and what kernels ask for themselves stay where the runtime puts them. The memory must outlive
 * the interpreter's last use of it: destroy the interpreter first.
 *
 * Sizes are known once the runtime has allocated, and then it holds an arena of its own. The C++ host makes it give that
 * back. Where a host cannot, Learn from a second interpreter of the model first.
 *
 * Header only, over the C interface: link with arenite::arenite. It needs no header of TensorFlow Lite's. C++14, no
 * exceptions, no RTTI. Threads: as the interpreter, one at a time.
 */
#ifndef ARENITE_TFLITE_CUSTOM_HPP
#define ARENITE_TFLITE_CUSTOM_HPP

#include <arenite.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace arenite {
namespace tflite {

/* Tensor indices of the runtime's, valid until it changes its graph. */
struct List {
    const int32_t *data;
    uint64_t count;
};

struct TensorInfo {
    size_t bytes;
    /* `kAreniteArenaRw` and so on, which are TFLite's numbers. */
    uint32_t allocation_type;
    bool variable;
};

struct NodeInfo {
    List inputs, outputs;
    /* Which inputs output 0 may take over: ARENITE_INPLACE_ bits, which are TFLite's. */
    uint64_t inplace;
};

struct CustomOptions {
    /* Of every tensor; TFLite refuses less than 64. */
    uint32_t alignment = 128;
    /* Search nodes per plan. */
    uint64_t effort = 20000;
    /* ARENITE_GRAPH_ bits. */
    uint32_t flags = 0;
};

/*
 * `Host` has
 *   bool Refresh();                              reads the graph anew
 *   size_t num_tensors(); TensorInfo tensor(size_t);
 *   size_t num_nodes();   NodeInfo node(size_t);          in execution order
 *   List inputs(); List outputs();
 *   bool Bind(size_t tensor, void *data, size_t bytes);   SetCustomAllocationForTensor
 *   bool Allocate();                                      AllocateTensors
 *   void Release();                                       ReleaseNonPersistentMemory, where there is one
 */
template <class Host>
class CustomAllocations {
  public:
    explicit CustomAllocations(Host *host, const CustomOptions &options = CustomOptions()) : host_(host), options_(options) {}
    CustomAllocations(const CustomAllocations &) = delete;
    CustomAllocations &operator=(const CustomAllocations &) = delete;

    /* Takes the graph and the sizes from another interpreter of the same model, which it allocates. */
    bool Learn(Host *twin) {
        if (!twin->Allocate() || !twin->Refresh()) return Fail("the other interpreter cannot be allocated");
        learned_ = Take(twin);
        return true;
    }

    /* Allocates the interpreter's tensors, planned ones in our memory. On false `message` says why; the interpreter then
     * may hold addresses that end with the next Apply, and must not be run before one succeeds. */
    bool Apply() {
        Snapshot graph;
        if (learned_.tensors.empty()) {
            /* Fails where bound tensors grew, which is how their sizes become known. */
            if (!host_->Allocate() && bound_.empty()) return Fail("the runtime cannot allocate the tensors");
            if (!host_->Refresh()) return Fail("the graph cannot be read");
            graph = Take(host_);
        } else {
            std::swap(graph, learned_);
        }
        for (int pass = 0; pass < 4; pass++) {
            if (!Place(graph)) return false;
            host_->Release();
            const bool allocated = host_->Allocate();
            if (!host_->Refresh()) return Fail("the graph cannot be read");
            Snapshot now = Take(host_);
            if (allocated && Same(graph, now)) return true;
            graph = std::move(now);
        }
        return Fail("the runtime does not allocate the tensors, or their sizes do not settle");
    }

    const char *message() const { return message_; }
    /* Bytes of the planned arena, of all its tensors together, and the least that any plan needs. */
    uint64_t arena_bytes() const { return info_.arena_bytes; }
    uint64_t total_bytes() const { return info_.total_bytes; }
    uint64_t lower_bound() const { return info_.lower_bound; }
    /* Tensors in it. */
    size_t bound_tensors() const { return bound_now_; }

  private:
    struct Destroy {
        void operator()(arenite_graph_t *p) const { (void)(arenite_graph_destroy(p) == ARENITE_OK); }
        void operator()(arenite_planner_t *p) const { (void)(arenite_planner_destroy(p) == ARENITE_OK); }
        void operator()(arenite_plan_t *p) const { (void)(arenite_plan_destroy(p) == ARENITE_OK); }
    };
    template <class T>
    using Owned = std::unique_ptr<T, Destroy>;
    /* Kernels with wide loads read this far past a tensor. */
    static constexpr size_t kTail = 64;

    bool Fail(const char *why) {
        std::snprintf(message_, sizeof message_, "%s", why);
        return false;
    }

    struct Lists {
        std::vector<int32_t> inputs, outputs;
        uint64_t inplace;
    };
    /* The graph at one moment. */
    struct Snapshot {
        std::vector<TensorInfo> tensors;
        std::vector<Lists> nodes;
        std::vector<int32_t> inputs, outputs;
        /* Those that stay with the runtime. Sizes are not settled before the model runs where a node has a dynamic output, or
         * comes after one that has. And kernels choose their method by where their weights are: tensors that are made from
         * constants alone must not look different. */
        std::vector<bool> left;
    };

    static std::vector<int32_t> Copy(const List &l) { return std::vector<int32_t>(l.data, l.data + l.count); }

    static Snapshot Take(Host *host) {
        Snapshot s;
        s.tensors.resize(host->num_tensors());
        for (size_t t = 0; t < s.tensors.size(); t++) s.tensors[t] = host->tensor(t);
        s.left.resize(s.tensors.size(), false);
        std::vector<bool> constant(s.tensors.size());
        for (size_t t = 0; t < constant.size(); t++) {
            const uint32_t kind = s.tensors[t].allocation_type;
            constant[t] = kind == kAreniteMmapRo || kind == kArenitePersistentRo;
        }
        s.inputs = Copy(host->inputs());
        s.outputs = Copy(host->outputs());
        bool late = false;
        for (size_t n = 0; n < host->num_nodes(); n++) {
            const NodeInfo node = host->node(n);
            s.nodes.push_back({Copy(node.inputs), Copy(node.outputs), node.inplace});
            bool unpacked = !s.nodes.back().inputs.empty();
            for (int32_t t : s.nodes.back().inputs) unpacked = unpacked && (!Valid(s, t) || constant[Index(t)]);
            for (int32_t t : s.nodes.back().outputs) late |= Valid(s, t) && s.tensors[Index(t)].allocation_type == kAreniteDynamic;
            for (int32_t t : s.nodes.back().outputs) {
                if (Valid(s, t) && unpacked) constant[Index(t)] = true;
                if (Valid(s, t) && (late || unpacked)) s.left[Index(t)] = true;
            }
        }
        return s;
    }

    static size_t Index(int32_t t) { return static_cast<size_t>(t); }
    static bool Valid(const Snapshot &s, int32_t t) { return t >= 0 && Index(t) < s.tensors.size(); }
    bool Ours(size_t t) const { return t < bound_.size() && bound_[t]; }

    /* Whether what was planned still holds; temporaries that came along are the runtime's. */
    bool Same(const Snapshot &a, const Snapshot &b) const {
        if (b.tensors.size() < a.tensors.size() || b.nodes.size() != a.nodes.size()) return false;
        for (size_t t = 0; t < a.tensors.size(); t++) {
            if (Ours(t) && b.tensors[t].bytes != a.tensors[t].bytes) return false;
        }
        return true;
    }

    bool Check(arenite_status_t status, const arenite_failure_t &failure) {
        return status == ARENITE_OK || Fail(failure.message);
    }

    bool Graph(const Snapshot &s, Owned<arenite_graph_t> *out) {
        arenite_graph_t *g = nullptr;
        if (arenite_graph_create(&g) != ARENITE_OK) return Fail("no memory for the graph");
        out->reset(g);
        arenite_failure_t failure{};
        failure.struct_size = sizeof failure;
        bool ok = true;
        uint32_t index = 0;
        for (size_t t = 0; ok && t < s.tensors.size(); t++) {
            arenite_tensor_desc_t d{};
            d.struct_size = sizeof d;
            d.bytes = s.tensors[t].bytes;
            const bool main = s.tensors[t].allocation_type == kAreniteArenaRw && !s.tensors[t].variable && !s.left[t];
            d.allocation_type = main || Ours(t) ? kAreniteArenaRw : kAreniteCustom;
            ok = arenite_graph_add_tensor(g, &d, &index) == ARENITE_OK;
        }
        for (size_t n = 0; ok && n < s.nodes.size(); n++) {
            arenite_node_desc_t d{};
            d.struct_size = sizeof d;
            d.inputs = s.nodes[n].inputs.data();
            d.input_count = s.nodes[n].inputs.size();
            d.outputs = s.nodes[n].outputs.data();
            d.output_count = s.nodes[n].outputs.size();
            d.inplace = s.nodes[n].inplace;
            ok = arenite_graph_add_node(g, &d, &index) == ARENITE_OK;
        }
        ok = ok && arenite_graph_set_inputs(g, s.inputs.data(), s.inputs.size()) == ARENITE_OK &&
             arenite_graph_set_outputs(g, s.outputs.data(), s.outputs.size()) == ARENITE_OK;
        if (!ok) (void)(arenite_graph_last_failure(g, &failure) == ARENITE_OK);
        return ok || Fail(failure.message);
    }

    /* Plans, takes the memory and binds. What was bound before and has no place now gets some memory all the same: the
     * runtime checks its address. */
    bool Place(const Snapshot &snapshot) {
        const std::vector<TensorInfo> &tensors = snapshot.tensors;
        Owned<arenite_graph_t> graph;
        if (!Graph(snapshot, &graph)) return false;
        arenite_failure_t failure{};
        failure.struct_size = sizeof failure;
        arenite_planner_options_t how{};
        how.struct_size = sizeof how;
        how.effort = options_.effort;
        arenite_planner_t *planner = nullptr;
        if (!Check(arenite_planner_create(&how, &planner, &failure), failure)) return false;
        Owned<arenite_planner_t> own_planner(planner);
        arenite_graph_options_t rules{};
        rules.struct_size = sizeof rules;
        rules.flags = options_.flags;
        rules.policy = ARENITE_POLICY_TFLITE;
        rules.alignment = options_.alignment;
        arenite_plan_t *plan = nullptr;
        const arenite_status_t planned = arenite_planner_plan_graph(planner, graph.get(), &rules, &plan);
        if (planned != ARENITE_OK) (void)(arenite_planner_last_failure(planner, &failure) == ARENITE_OK);
        if (!Check(planned, failure)) return false;
        Owned<arenite_plan_t> own_plan(plan);
        arenite_plan_info_t info{};
        info.struct_size = sizeof info;
        if (arenite_plan_info(plan, &info) != ARENITE_OK) return Fail("the plan cannot be read");

        uint64_t bytes = info.arena_bytes;
        std::vector<uint64_t> offsets(tensors.size(), ARENITE_NO_AMOUNT);
        for (size_t t = 0; t < tensors.size(); t++) {
            arenite_plan_tensor_t at{};
            at.struct_size = sizeof at;
            if (arenite_plan_tensor(plan, 0, static_cast<uint32_t>(t), &at) == ARENITE_OK &&
                at.lifetime.arena == ARENITE_ARENA_MAIN) {
                offsets[t] = at.offset;
            } else if (Ours(t)) {
                bytes = tensors[t].bytes > bytes ? tensors[t].bytes : bytes;
            }
        }
        const size_t align = info.alignment > 64 ? info.alignment : 64;
        if (bytes > SIZE_MAX / 2) return Fail("the arena does not fit the address space");
        std::unique_ptr<unsigned char[]> block(new (std::nothrow) unsigned char[static_cast<size_t>(bytes) + align + kTail]);
        if (!block) return Fail("no memory for the arena");
        unsigned char *base = block.get() + (align - reinterpret_cast<uintptr_t>(block.get()) % align) % align;
        bound_.resize(tensors.size(), false);
        bound_now_ = 0;
        for (size_t t = 0; t < tensors.size(); t++) {
            const bool placed = offsets[t] != ARENITE_NO_AMOUNT;
            if (!placed && !bound_[t]) continue;
            unsigned char *data = base + (placed ? static_cast<size_t>(offsets[t]) : 0);
            if (!host_->Bind(t, data, tensors[t].bytes)) {
                std::snprintf(message_, sizeof message_, "the runtime refused memory for tensor %zu", t);
                return false;
            }
            bound_[t] = true;
            bound_now_ += placed;
        }
        /* No tensor is in the old block any more. */
        block_ = std::move(block);
        info_ = info;
        return true;
    }

    Host *host_;
    CustomOptions options_;
    Snapshot learned_;
    std::unique_ptr<unsigned char[]> block_;
    arenite_plan_info_t info_{};
    /* Tensors that were ever bound: the runtime then says that they are custom. */
    std::vector<bool> bound_;
    size_t bound_now_ = 0;
    char message_[ARENITE_MESSAGE_BYTES + 64] = "";
};

/* `tflite::Interpreter`, its primary subgraph. */
template <class Interpreter>
class InterpreterHost {
  public:
    explicit InterpreterHost(Interpreter *interpreter) : i_(interpreter) {}
    bool Refresh() { return true; }
    size_t num_tensors() { return i_->tensors_size(); }
    TensorInfo tensor(size_t t) {
        const auto *x = i_->tensor(static_cast<int>(t));
        return {x->bytes, static_cast<uint32_t>(x->allocation_type), x->is_variable};
    }
    size_t num_nodes() { return i_->execution_plan().size(); }
    NodeInfo node(size_t n) {
        const auto &pair = *i_->node_and_registration(i_->execution_plan()[n]);
        return {Of(pair.first.inputs), Of(pair.first.outputs), Flags(pair.second, 0)};
    }
    List inputs() { return Of(i_->inputs()); }
    List outputs() { return Of(i_->outputs()); }
    bool Bind(size_t t, void *data, size_t bytes) {
        return static_cast<int>(i_->SetCustomAllocationForTensor(static_cast<int>(t), {data, bytes}, 0)) == 0;
    }
    bool Allocate() { return static_cast<int>(i_->AllocateTensors()) == 0; }
    void Release() { (void)i_->ReleaseNonPersistentMemory(); }

  private:
    template <class IntArray>
    static auto Of(const IntArray *a) -> decltype(a->size, List()) {
        if (a == nullptr || a->size <= 0) return {nullptr, 0};
        return {a->data, static_cast<uint64_t>(a->size)};
    }
    static List Of(const std::vector<int> &v) { return {v.data(), v.size()}; }
    /* Registrations have had `inplace_operator` since 2.14. */
    template <class Registration>
    static auto Flags(const Registration &r, int) -> decltype(static_cast<uint64_t>(r.inplace_operator)) {
        return static_cast<uint64_t>(r.inplace_operator);
    }
    template <class Registration>
    static uint64_t Flags(const Registration &, long) {
        return 0;
    }
    Interpreter *i_;
};

} // namespace tflite
} // namespace arenite

#endif
