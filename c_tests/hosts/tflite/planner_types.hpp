/* Types that only look like TensorFlow Lite's: of its structs the members that arenite/tflite.hpp uses, of its two abstract
 * classes the functions in its order. */
#ifndef PLANNER_TYPES_HPP
#define PLANNER_TYPES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

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
    int buffer_handle;
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

/* TFLite's two abstract classes. */
struct GraphInfo {
    virtual ~GraphInfo() {}
    virtual size_t num_tensors() const = 0;
    virtual Tensor *tensor(size_t i) = 0;
    virtual Tensor *tensors() = 0;
    virtual size_t num_execution_nodes() const = 0;
    virtual size_t num_total_nodes() const = 0;
    virtual const Node &node(size_t i) const = 0;
    virtual const Registration &registration(size_t i) const = 0;
    virtual size_t node_index(size_t i) const = 0;
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

#endif
