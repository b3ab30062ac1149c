/* TensorFlow Lite Micro's planner interface as compilers lay it out: these functions in this order, pure where they are.
 * The types only look like the host's, and the real library takes objects of them. */
#ifndef TFLM_PLANNER_TYPES_H
#define TFLM_PLANNER_TYPES_H

#include <arenite/tflm.hpp>

namespace mock {

enum Status { kMockOk = 0, kMockError = 1 };

class MicroMemoryPlanner {
  public:
    MicroMemoryPlanner() {}
    virtual ~MicroMemoryPlanner() {}
    virtual Status AddBuffer(int size, int first, int last) = 0;
    virtual Status AddBuffer(int, int, int, int) { return kMockError; }
    virtual size_t GetMaximumMemorySize() = 0;
    virtual int GetBufferCount() = 0;
    virtual Status GetOffsetForBuffer(int buffer, int *offset) = 0;
    virtual Status Init(unsigned char *, int) { return kMockOk; }
    virtual bool preserves_all_tensors() const = 0;
    virtual void PrintMemoryPlan() {}
#if !__STDC_HOSTED__
    static void operator delete(void *) {}
#endif
};

} // namespace mock

struct Micro {
    using MemoryPlanner = mock::MicroMemoryPlanner;
    using Status = mock::Status;
    static constexpr Status kOk = mock::kMockOk, kError = mock::kMockError;
};

#endif
