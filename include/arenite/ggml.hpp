/*
 * A ggml graph's tensors placed by an arenite plan, in place of ggml's graph allocator. Header only, C++11; link
 * arenite::arenite.
 *
 *   #include <ggml.h>
 *   #include <ggml-backend.h>
 *   #include <arenite/ggml.hpp>                          // after ggml's own
 *
 *   arenite::ggml::Placement<> placement;                // outlives the graphs it has placed
 *   if (!placement.place(graph)) { ... }                 // in place of ggml_gallocr_alloc_graph(allocator, graph)
 *   ggml_backend_tensor_set(input, ...);
 *   ggml_backend_graph_compute(cpu, graph);
 *
 * Planned are the tensors of the graph that have no memory yet; weights, a KV cache and whatever else has its own buffer stay
 * where they are. Lifetimes and sharing are as in ggml's allocator: inputs (ggml_set_input) are alive from the start,
 * outputs (ggml_set_output) and results that nobody reads to the end; views have their source's bytes; an element-wise node
 * writes over a source of the same layout that nobody reads later. ggml's allocator skips tensors that are placed, so that a
 * graph may be given to it afterwards.
 *
 * Graphs of the same lifetimes and sizes as one of the last eight kinds reuse its plan: a decoder that builds its graph anew
 * for every token, with a prompt now and then, plans each kind once. Memory is that of the largest kind. Each call ends the
 * tensors of the graph placed before. For memory that the CPU can address (CPU backend).
 *
 * Threads: one at a time. Exceptions: std::bad_alloc from its own lists.
 */
#ifndef ARENITE_GGML_HPP
#define ARENITE_GGML_HPP

#include <arenite.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

namespace arenite {
namespace ggml {

#ifdef GGML_MAX_DIMS
/* What `Placement` asks of ggml. Another engine with graphs of this kind has a class like it. */
struct Engine {
    using Graph = ggml_cgraph;
    using Tensor = ggml_tensor;
    using Buffer = ggml_backend_buffer_t;

    static int count(Graph *graph) { return ggml_graph_n_nodes(graph); }
    static Tensor *node(Graph *graph, int i) { return ggml_graph_node(graph, i); }
    static int sources() { return GGML_MAX_SRC; }
    static Tensor *source(const Tensor *tensor, int k) { return tensor->src[k]; }
    static Tensor *viewed(const Tensor *tensor) { return tensor->view_src; }
    static bool placed(const Tensor *tensor) { return tensor->data != nullptr || tensor->buffer != nullptr; }
    static bool is_input(const Tensor *tensor) { return (tensor->flags & GGML_TENSOR_FLAG_INPUT) != 0; }
    static bool is_output(const Tensor *tensor) { return (tensor->flags & GGML_TENSOR_FLAG_OUTPUT) != 0; }
    static std::size_t bytes(const Tensor *tensor) { return ggml_nbytes(tensor); }

    /* Whether the node reads each element of that source before it writes it, and both lie in memory in the same way. */
    static bool writes_over(const Tensor *node, int k) {
        switch (node->op) {
        case GGML_OP_ADD: case GGML_OP_SUB: case GGML_OP_MUL: case GGML_OP_DIV:
            break;
        case GGML_OP_ADD1: case GGML_OP_SCALE: case GGML_OP_SQR: case GGML_OP_SQRT: case GGML_OP_LOG: case GGML_OP_UNARY:
        case GGML_OP_DIAG_MASK_INF: case GGML_OP_DIAG_MASK_ZERO: case GGML_OP_RMS_NORM: case GGML_OP_ROPE:
        case GGML_OP_SOFT_MAX:
            if (k != 0) {
                return false;
            }
            break;
        default:
            return false;
        }
        const Tensor *source = node->src[k];
        return source->type == node->type && ggml_are_same_shape(source, node) && ggml_are_same_stride(source, node);
    }

    static Buffer wrap(void *data, std::size_t bytes) { return ggml_backend_cpu_buffer_from_ptr(data, bytes); }
    static void unwrap(Buffer buffer) { ggml_backend_buffer_free(buffer); }
    static bool bind(Buffer buffer, Tensor *tensor, void *data) {
        return ggml_backend_tensor_alloc(buffer, tensor, data) == GGML_STATUS_SUCCESS;
    }
    static bool bind_view(Tensor *tensor) { return ggml_backend_view_init(tensor) == GGML_STATUS_SUCCESS; }
};
#else
struct Engine;
#endif

template <class Host = Engine>
class Placement {
public:
    using Tensor = typename Host::Tensor;

    /*
     * `pool` outlives this object; null: memory from the system. `alignment` of every tensor: a power of two up to 65536;
     * the CPU backend needs 32. `effort`: search nodes per plan at most.
     */
    explicit Placement(const arenite_pool_t *pool = nullptr, std::uint32_t alignment = 128, std::uint64_t effort = 20000)
        : pool_(pool), alignment_(alignment) {
        std::memset(&failure_, 0, sizeof failure_);
        failure_.struct_size = sizeof failure_;
        arenite_planner_options_t options;
        std::memset(&options, 0, sizeof options);
        options.struct_size = sizeof options;
        options.effort = effort;
        if (arenite_planner_create(&options, &planner_, nullptr) != ARENITE_OK) {
            planner_ = nullptr;
        }
        if (pool_ == nullptr && arenite_pool_create(nullptr, &own_, nullptr) == ARENITE_OK) {
            pool_ = own_;
        }
    }

    Placement(const Placement &) = delete;
    Placement &operator=(const Placement &) = delete;

    ~Placement() {
        drop();
        (void)(arenite_planner_destroy(planner_) == ARENITE_OK);
        (void)(arenite_pool_destroy(own_, nullptr) == ARENITE_OK);
    }

    /* Gives every tensor of the graph memory. False on failure: see `failure`; tensors placed before it stay placed. */
    bool place(typename Host::Graph *graph) {
        collect(graph);
        if (!plan() || !memory()) {
            return false;
        }
        for (std::size_t i = 0; i < tensors_.size(); i++) {
            const Block &block = blocks_[find(tensors_[i].block)];
            if (!Host::bind(buffer_, tensors_[i].tensor, data_ + block.offset)) {
                return fail("the engine refused a tensor's place");
            }
        }
        for (std::size_t i = 0; i < views_.size(); i++) {
            if (!Host::placed(views_[i]) && !Host::bind_view(views_[i])) {
                return fail("the engine refused a view");
            }
        }
        return true;
    }

    /* Bytes of the plan, and the bytes that no plan can be below. */
    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t lower_bound() const { return bound_; }
    /* Tensors of the last graph with bytes in the plan, and plans made so far. */
    std::size_t tensors() const { return tensors_.size(); }
    std::uint64_t plans() const { return plans_; }
    const arenite_failure_t &failure() const { return failure_; }

private:
    /* A tensor with bytes of its own, or sharing those of another: both name one block, through `Block::joined`. */
    struct Row {
        Tensor *tensor;
        std::size_t block;
    };

    struct Block {
        std::uint64_t bytes;
        std::uint32_t first, last;
        std::size_t joined;
        std::uint64_t offset;
        bool kept, read;
    };

    static Tensor *root(Tensor *tensor) {
        while (Host::viewed(tensor) != nullptr) {
            tensor = Host::viewed(tensor);
        }
        return tensor;
    }

    std::size_t find(std::size_t block) const {
        while (blocks_[block].joined != block) {
            block = blocks_[block].joined;
        }
        return block;
    }

    /* The row of a tensor's root, made where there is none; `npos` where it has memory already. */
    std::size_t touch(Tensor *tensor, std::uint32_t step, bool written) {
        if (Host::viewed(tensor) != nullptr && !Host::placed(tensor) && seen_.emplace(tensor, npos()).second) {
            views_.push_back(tensor);
        }
        Tensor *owner = root(tensor);
        const auto known = seen_.find(owner);
        std::size_t row;
        if (known != seen_.end()) {
            row = known->second;
        } else if (Host::placed(owner)) {
            return npos();
        } else {
            row = tensors_.size();
            seen_.emplace(owner, row);
            tensors_.push_back(Row{owner, blocks_.size()});
            /* What is read first, and an input, is there before the graph runs. */
            const std::uint32_t first = written && !Host::is_input(owner) ? step : 0;
            blocks_.push_back(Block{Host::bytes(owner), first, step, blocks_.size(), 0, false, false});
        }
        Block &block = blocks_[tensors_[row].block];
        block.last = block.last > step ? block.last : step;
        block.kept = block.kept || Host::is_output(owner) || Host::is_output(tensor);
        block.read = block.read || !written;
        return row;
    }

    static std::size_t npos() { return static_cast<std::size_t>(-1); }

    void collect(typename Host::Graph *graph) {
        tensors_.clear();
        blocks_.clear();
        views_.clear();
        seen_.clear();
        const int count = Host::count(graph);
        steps_ = static_cast<std::uint32_t>(count);
        for (int i = 0; i < count; i++) {
            Tensor *node = Host::node(graph, i);
            for (int k = 0; k < Host::sources(); k++) {
                if (Host::source(node, k) != nullptr) {
                    (void)touch(Host::source(node, k), static_cast<std::uint32_t>(i), false);
                }
            }
            (void)touch(node, static_cast<std::uint32_t>(i), true);
        }
        for (std::size_t i = 0; i < blocks_.size(); i++) {
            /* A result that nobody in the graph reads is the caller's. */
            if (blocks_[i].kept || !blocks_[i].read) {
                blocks_[i].kept = true;
                blocks_[i].last = steps_;
            }
        }
        for (int i = 0; i < count; i++) {
            share(Host::node(graph, i), static_cast<std::uint32_t>(i));
        }
    }

    /* Lets a node write over a source that ends there. */
    void share(Tensor *node, std::uint32_t step) {
        const auto at = seen_.find(node);
        if (Host::viewed(node) != nullptr || at == seen_.end() || at->second == npos()) {
            return;
        }
        const std::size_t mine = tensors_[at->second].block;
        if (blocks_[mine].first != step) {
            return;
        }
        for (int k = 0; k < Host::sources(); k++) {
            Tensor *source = Host::source(node, k);
            if (source == nullptr || !Host::writes_over(node, k)) {
                continue;
            }
            Tensor *owner = root(source);
            const auto from = seen_.find(owner);
            if (from == seen_.end() || from->second == npos() || Host::bytes(owner) != Host::bytes(source)) {
                continue;
            }
            const std::size_t theirs = find(tensors_[from->second].block);
            Block &block = blocks_[theirs];
            if (theirs == mine || block.kept || block.last != step || block.bytes != blocks_[mine].bytes ||
                readers(node, theirs) != 1) {
                continue;
            }
            block.last = blocks_[mine].last;
            block.kept = blocks_[mine].kept;
            blocks_[mine].joined = theirs;
            return;
        }
    }

    /* How many sources of a node lie in a block. */
    int readers(Tensor *node, std::size_t block) const {
        int count = 0;
        for (int k = 0; k < Host::sources(); k++) {
            Tensor *source = Host::source(node, k);
            const auto at = source != nullptr ? seen_.find(root(source)) : seen_.end();
            count += at != seen_.end() && at->second != npos() && find(tensors_[at->second].block) == block;
        }
        return count;
    }

    /* A plan made before. */
    struct Planned {
        std::vector<Block> blocks;
        std::uint64_t bytes, bound;
    };

    /* As many kinds of graphs are remembered. */
    static std::size_t kinds() { return 8; }

    bool same(const std::vector<Block> &before) const {
        if (before.size() != blocks_.size()) {
            return false;
        }
        for (std::size_t i = 0; i < before.size(); i++) {
            const Block &a = before[i], &b = blocks_[i];
            if (a.bytes != b.bytes || a.first != b.first || a.last != b.last || a.joined != b.joined || a.kept != b.kept) {
                return false;
            }
        }
        return true;
    }

    bool plan() {
        for (const Planned &before : planned_) {
            if (same(before.blocks)) {
                blocks_ = before.blocks;
                bytes_ = before.bytes;
                bound_ = before.bound;
                return true;
            }
        }
        bytes_ = bound_ = 0;
        if (planner_ == nullptr) {
            return fail("no memory for a planner");
        }
        if (arenite_planner_clear(planner_) != ARENITE_OK) {
            return fail(planner_);
        }
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < blocks_.size(); i++) {
            if (blocks_[i].joined != i) {
                continue;
            }
            arenite_buffer_desc_t desc;
            std::memset(&desc, 0, sizeof desc);
            desc.struct_size = sizeof desc;
            desc.flags = blocks_[i].kept ? ARENITE_BUFFER_KEPT : 0;
            desc.bytes = blocks_[i].bytes;
            desc.first = blocks_[i].first;
            desc.last = blocks_[i].last;
            desc.alignment = alignment_;
            std::uint32_t index = 0;
            if (arenite_planner_add(planner_, &desc, &index) != ARENITE_OK) {
                return fail(planner_);
            }
            order.push_back(i);
        }
        arenite_plan_t *plan = nullptr;
        if (arenite_planner_plan(planner_, &plan) != ARENITE_OK) {
            return fail(planner_);
        }
        arenite_plan_info_t info;
        std::memset(&info, 0, sizeof info);
        info.struct_size = sizeof info;
        bool good = arenite_plan_info(plan, &info) == ARENITE_OK;
        for (std::size_t i = 0; good && i < order.size(); i++) {
            good = arenite_plan_offset(plan, static_cast<std::uint32_t>(i), &blocks_[order[i]].offset) == ARENITE_OK;
        }
        (void)(arenite_plan_destroy(plan) == ARENITE_OK);
        if (!good) {
            return fail("the plan could not be read");
        }
        bytes_ = info.arena_bytes;
        bound_ = info.lower_bound;
        Planned made = {blocks_, bytes_, bound_};
        if (planned_.size() < kinds()) {
            planned_.push_back(std::move(made));
        } else {
            planned_[static_cast<std::size_t>(plans_ % kinds())] = std::move(made);
        }
        plans_++;
        return true;
    }

    bool memory() {
        const std::uint64_t needed = bytes_ > 0 ? bytes_ : 1;
        if (buffer_ != nullptr && capacity_ >= needed) {
            return true;
        }
        drop();
        void *data = nullptr;
        if (needed > SIZE_MAX ||
            arenite_pool_alloc(pool_, static_cast<std::size_t>(needed), alignment_, &data, &failure_) != ARENITE_OK) {
            return false;
        }
        data_ = static_cast<char *>(data);
        capacity_ = static_cast<std::size_t>(needed);
        buffer_ = Host::wrap(data_, capacity_);
        return buffer_ != nullptr || fail("the engine made no buffer of the memory");
    }

    void drop() {
        if (buffer_ != nullptr) {
            Host::unwrap(buffer_);
        }
        if (data_ != nullptr) {
            (void)(arenite_pool_free(pool_, data_, nullptr) == ARENITE_OK);
        }
        buffer_ = nullptr;
        data_ = nullptr;
        capacity_ = 0;
    }

    bool fail(const char *message) {
        std::memset(&failure_, 0, sizeof failure_);
        failure_.struct_size = sizeof failure_;
        failure_.status = ARENITE_ERR_ARGUMENT;
        std::strncpy(failure_.message, message, sizeof failure_.message - 1);
        return false;
    }

    bool fail(const arenite_planner_t *planner) {
        if (arenite_planner_last_failure(planner, &failure_) != ARENITE_OK) {
            return fail("the planner failed");
        }
        return false;
    }

    const arenite_pool_t *pool_;
    arenite_pool_t *own_ = nullptr;
    std::uint32_t alignment_;
    arenite_planner_t *planner_ = nullptr;
    arenite_failure_t failure_;
    std::vector<Row> tensors_;
    std::vector<Block> blocks_;
    std::vector<Planned> planned_;
    std::vector<Tensor *> views_;
    std::unordered_map<const Tensor *, std::size_t> seen_;
    std::uint32_t steps_ = 0;
    std::uint64_t bytes_ = 0, bound_ = 0, plans_ = 0;
    typename Host::Buffer buffer_ = nullptr;
    char *data_ = nullptr;
    std::size_t capacity_ = 0;
};

} // namespace ggml
} // namespace arenite

#endif
