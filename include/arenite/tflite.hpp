/*
 * arenite as TensorFlow Lite's memory planner, for those who build TensorFlow Lite.
 *
 *   #include "tensorflow/lite/graph_info.h"
 *   #include "tensorflow/lite/memory_planner.h"
 *   #include <arenite/tflite.hpp>
 *
 *   struct Lite {
 *     using MemoryPlanner = tflite::MemoryPlanner;
 *     using GraphInfo = tflite::GraphInfo;
 *     using Context = TfLiteContext;
 *     using Status = TfLiteStatus;
 *     static constexpr Status kOk = kTfLiteOk, kError = kTfLiteError;
 *   };
 *   memory_planner_ = std::make_unique<arenite::tflite::Planner<Lite>>(  // in Subgraph, where it makes an ArenaPlanner
 *       &context_, CreateGraphInfo(), preserve_all_tensors_, kDefaultTensorAlignment, subgraph_index_);
 *
 * Header only, over the C interface: link with arenite::arenite. It needs no header of TensorFlow Lite's: everything it
 * uses of the host it finds through the traits. C++14, no exceptions, no RTTI.
 *
 * Three more members of the traits, each optional:
 *
 *     static constexpr int kNullBufferHandle = kTfLiteNullBufferHandle;   // tensors with another handle keep their address
 *     static void OnArenaAlloc(int subgraph, int arena, size_t bytes);    // as tflite::OnTfLiteArenaAlloc of its profiler:
 *     static void OnArenaDealloc(int subgraph, int arena, size_t bytes);  // arena 0 is the main one, 1 the persistent one
 *
 * The newest versions pass a TfLiteAllocator to their planner: pass it here as well, and both arenas are its memory.
 *
 * Offsets and sharing are those of TFLite's ArenaPlanner, except where that corrupts: a tensor that grew without a reset
 * never lands on a live one, and with the default flags neither does a reshape that is modified in place.
 * Threads: as TFLite's planner, one at a time.
 */
#ifndef ARENITE_TFLITE_HPP
#define ARENITE_TFLITE_HPP

#include <arenite.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace arenite {
namespace tflite {
namespace detail {

/* Registrations have had `inplace_operator` since 2.14. */
template <class Registration>
auto inplace_flags(const Registration &r, int) -> decltype(static_cast<uint64_t>(r.inplace_operator)) {
    return static_cast<uint64_t>(r.inplace_operator);
}
template <class Registration>
uint64_t inplace_flags(const Registration &, long) {
    return 0;
}

/* In some versions a tensor whose bytes a delegate holds, known by a handle, gets no address from the planner. */
template <class Host, class Tensor>
auto is_elsewhere(const Tensor &t, int) -> decltype(t.buffer_handle != Host::kNullBufferHandle) {
    return t.buffer_handle != Host::kNullBufferHandle;
}
template <class Host, class Tensor>
bool is_elsewhere(const Tensor &, long) {
    return false;
}

/* The profiler's events, for hosts that have one. */
template <class Host>
auto tell_taken(int subgraph, int arena, size_t bytes, int) -> decltype(Host::OnArenaAlloc(subgraph, arena, bytes)) {
    return Host::OnArenaAlloc(subgraph, arena, bytes);
}
template <class Host>
void tell_taken(int, int, size_t, long) {}
template <class Host>
auto tell_given(int subgraph, int arena, size_t bytes, int) -> decltype(Host::OnArenaDealloc(subgraph, arena, bytes)) {
    return Host::OnArenaDealloc(subgraph, arena, bytes);
}
template <class Host>
void tell_given(int, int, size_t, long) {}

struct DestroyGraph {
    void operator()(arenite_graph_t *g) const { (void)(arenite_graph_destroy(g) == ARENITE_OK); }
};
struct DestroyIncremental {
    void operator()(arenite_incremental_t *i) const { (void)(arenite_incremental_destroy(i) == ARENITE_OK); }
};
using Graph = std::unique_ptr<arenite_graph_t, DestroyGraph>;
using Incremental = std::unique_ptr<arenite_incremental_t, DestroyIncremental>;

} // namespace detail

template <class Host>
class Planner final : public Host::MemoryPlanner {
    using Status = typename Host::Status;
    using GraphInfo = typename Host::GraphInfo;
    using Context = typename Host::Context;

  public:
    /* `flags`: further ARENITE_INCREMENTAL_ bits, for instance ARENITE_INCREMENTAL_TFLITE_SHARING. */
    Planner(Context *context, std::unique_ptr<GraphInfo> graph, bool preserve_all, int alignment, int subgraph = 0,
            uint32_t flags = 0)
        : context_(context), info_(std::move(graph)), subgraph_(subgraph) {
        options_.struct_size = sizeof options_;
        options_.flags = flags | (preserve_all ? ARENITE_INCREMENTAL_PRESERVE_ALL : 0u);
        options_.alignment = alignment > 0 ? static_cast<uint32_t>(alignment) : 0u;
    }

    /* `allocator`: a TfLiteAllocator, null for the system's memory. It outlives the planner; its `reallocate` is not used. */
    template <class Allocator>
    Planner(Context *context, std::unique_ptr<GraphInfo> graph, bool preserve_all, int alignment, int subgraph,
            Allocator *allocator, uint32_t flags = 0)
        : Planner(context, std::move(graph), preserve_all, alignment, subgraph, flags) {
        if (allocator == nullptr) return;
        options_.main.kind = ARENITE_SOURCE_CALLBACKS;
        options_.main.allocate = allocator->allocate;
        options_.main.deallocate = allocator->deallocate;
        options_.main.user = allocator->data;
        options_.persistent = options_.main;
    }

    Planner(const Planner &) = delete;
    Planner &operator=(const Planner &) = delete;
    ~Planner() override {
        planner_.reset();
        retired_.clear();
        Tell();
    }

    Status PlanAllocations() override {
        detail::Graph graph;
        if (Copy(&graph) != Host::kOk) return Host::kError;
        arenite_incremental_t *made = nullptr;
        arenite_failure_t failure{};
        failure.struct_size = sizeof failure;
        if (arenite_incremental_create(graph.get(), &options_, &made, &failure) != ARENITE_OK) {
            return Report(failure.message);
        }
        detail::Incremental next(made);
        if (arenite_incremental_plan(next.get()) != ARENITE_OK) return Fail(next.get());
        /* Addresses of the old plan stay readable until the new one has some. */
        if (planner_) retired_.push_back(std::move(planner_));
        planner_ = std::move(next);
        return Host::kOk;
    }

    Status ExecuteAllocations(int first, int last) override {
        if (!planner_) return Report("PlanAllocations comes first");
        detail::Graph graph;
        if (Copy(&graph) != Host::kOk) return Host::kError;
        if (arenite_incremental_set_graph(planner_.get(), graph.get()) != ARENITE_OK ||
            arenite_incremental_execute(planner_.get(), first, last) != ARENITE_OK) {
            return Fail(planner_.get());
        }
        retired_.clear();
        Resolve();
        Tell();
        return Host::kOk;
    }

    Status ResetAllocations() override {
        if (!planner_) return Host::kOk;
        return arenite_incremental_reset(planner_.get()) == ARENITE_OK ? Host::kOk : Fail(planner_.get());
    }

    Status ResetAllocationsAfter(int node) override {
        if (!planner_) return Host::kOk;
        if (arenite_incremental_reset_after(planner_.get(), node) != ARENITE_OK) return Fail(planner_.get());
        Resolve();
        return Host::kOk;
    }

    Status ReleaseNonPersistentMemory() override {
        if (!planner_) return Host::kOk;
        if (arenite_incremental_release(planner_.get()) != ARENITE_OK) return Fail(planner_.get());
        retired_.clear();
        Tell();
        for (size_t t = 0; t < info_->num_tensors(); t++) {
            auto *tensor = info_->tensor(t);
            if (static_cast<uint32_t>(tensor->allocation_type) == kAreniteArenaRw) tensor->data.raw = nullptr;
        }
        return Host::kOk;
    }

    Status AcquireNonPersistentMemory() override {
        if (!planner_) return Report("PlanAllocations comes first");
        if (arenite_incremental_acquire(planner_.get()) != ARENITE_OK) return Fail(planner_.get());
        retired_.clear();
        Resolve();
        Tell();
        return Host::kOk;
    }

    bool HasNonPersistentMemory() override {
        uint32_t has = 0;
        return planner_ && arenite_incremental_has_memory(planner_.get(), &has) == ARENITE_OK && has != 0;
    }

    void DumpDebugInfo(const std::vector<int> &) const override {
        uint64_t length = 0;
        if (!planner_ || arenite_incremental_dump(planner_.get(), nullptr, 0, &length) != ARENITE_OK) return;
        std::string text(static_cast<size_t>(length) + 1, '\0');
        if (arenite_incremental_dump(planner_.get(), &text[0], text.size(), &length) == ARENITE_OK) {
            std::fputs(text.c_str(), stderr);
        }
    }

    void GetAllocInfo(size_t *arena, size_t *persistent) const override {
        *arena = *persistent = 0;
        if (planner_) (void)(arenite_incremental_allocation_info(planner_.get(), arena, persistent) == ARENITE_OK);
    }

    /* Where the arena of tensors of an allocation type begins; 0 where there is none. No part of the interface, but of
     * TFLite's own planner, for tests. */
    template <class AllocationType>
    intptr_t BasePointer(AllocationType type) const {
        void *base = nullptr;
        if (!planner_ || arenite_incremental_base(planner_.get(), static_cast<uint32_t>(type), &base) != ARENITE_OK) return 0;
        return reinterpret_cast<intptr_t>(base);
    }

  private:
    Status Report(const char *message) {
        if (context_ != nullptr && context_->ReportError != nullptr) {
            context_->ReportError(context_, "arenite: %s", message);
        }
        return Host::kError;
    }

    Status Fail(const arenite_incremental_t *planner) {
        arenite_failure_t failure{};
        failure.struct_size = sizeof failure;
        if (arenite_incremental_last_failure(planner, &failure) != ARENITE_OK) return Report("unknown failure");
        return Report(failure.message);
    }

    Status FailGraph(const arenite_graph_t *graph) {
        arenite_failure_t failure{};
        failure.struct_size = sizeof failure;
        if (arenite_graph_last_failure(graph, &failure) != ARENITE_OK) return Report("unknown failure");
        return Report(failure.message);
    }

    template <class IntArray>
    static const int32_t *Data(const IntArray *a) {
        return a != nullptr && a->size > 0 ? a->data : nullptr;
    }
    template <class IntArray>
    static uint64_t Count(const IntArray *a) {
        return a != nullptr && a->size > 0 ? static_cast<uint64_t>(a->size) : 0;
    }

    /* The host's graph as it is now. */
    Status Copy(detail::Graph *out) {
        arenite_graph_t *made = nullptr;
        if (arenite_graph_create(&made) != ARENITE_OK) return Report("no memory for the graph");
        out->reset(made);
        uint32_t index = 0;
        for (size_t t = 0; t < info_->num_tensors(); t++) {
            const auto *tensor = info_->tensor(t);
            arenite_tensor_desc_t desc{};
            desc.struct_size = sizeof desc;
            desc.flags = tensor->is_variable ? ARENITE_TENSOR_VARIABLE : 0u;
            desc.bytes = tensor->bytes;
            desc.allocation_type = static_cast<uint32_t>(tensor->allocation_type);
            if (arenite_graph_add_tensor(made, &desc, &index) != ARENITE_OK) return FailGraph(made);
        }
        for (size_t n = 0; n < info_->num_execution_nodes(); n++) {
            const auto &node = info_->node(n);
            arenite_node_desc_t desc{};
            desc.struct_size = sizeof desc;
            desc.inputs = Data(node.inputs);
            desc.input_count = Count(node.inputs);
            desc.outputs = Data(node.outputs);
            desc.output_count = Count(node.outputs);
            desc.temporaries = Data(node.temporaries);
            desc.temporary_count = Count(node.temporaries);
            desc.inplace = detail::inplace_flags(info_->registration(n), 0);
            if (arenite_graph_add_node(made, &desc, &index) != ARENITE_OK) return FailGraph(made);
        }
        const std::vector<int> &inputs = info_->inputs(), &outputs = info_->outputs(), &variables = info_->variables();
        if (arenite_graph_set_inputs(made, inputs.data(), inputs.size()) != ARENITE_OK ||
            arenite_graph_set_outputs(made, outputs.data(), outputs.size()) != ARENITE_OK ||
            arenite_graph_set_variables(made, variables.data(), variables.size()) != ARENITE_OK) {
            return FailGraph(made);
        }
        return Host::kOk;
    }

    /* Tells the profiler which arenas have other sizes than when it was told last. */
    void Tell() {
        size_t held[2] = {0, 0};
        GetAllocInfo(&held[0], &held[1]);
        for (int a = 0; a < 2; a++) {
            if (held[a] == told_[a]) continue;
            if (held[a] > 0) detail::tell_taken<Host>(subgraph_, a, held[a], 0);
            if (told_[a] > 0) detail::tell_given<Host>(subgraph_, a, told_[a], 0);
            told_[a] = held[a];
        }
    }

    /* Tells the host where its tensors are, and takes back addresses that it had from here and that have ended. */
    void Resolve() {
        given_.resize(info_->num_tensors(), nullptr);
        for (size_t t = 0; t < given_.size(); t++) {
            auto *tensor = info_->tensor(t);
            const uint32_t kind = static_cast<uint32_t>(tensor->allocation_type);
            void *data = nullptr;
            if (kind != kAreniteArenaRw && kind != kAreniteArenaRwPersistent) continue;
            if (detail::is_elsewhere<Host>(*tensor, 0)) continue;
            if (arenite_incremental_resolve(planner_.get(), static_cast<uint32_t>(t), &data, nullptr) != ARENITE_OK) {
                data = nullptr;
            }
            if (data != nullptr || tensor->data.raw == given_[t]) tensor->data.raw = static_cast<char *>(data);
            given_[t] = static_cast<char *>(data);
        }
    }

    Context *context_;
    std::unique_ptr<GraphInfo> info_;
    int subgraph_;
    size_t told_[2] = {0, 0};
    arenite_incremental_options_t options_{};
    detail::Incremental planner_;
    std::vector<detail::Incremental> retired_;
    std::vector<char *> given_;
};

} // namespace tflite
} // namespace arenite

#endif
