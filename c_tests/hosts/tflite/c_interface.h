/* The part of TensorFlow Lite's C interface that the tests use, found in a library when the program runs. Layouts are those
 * of 2.4 to 2.20 on 64 bits. */
#ifndef TFLITE_C_INTERFACE_H
#define TFLITE_C_INTERFACE_H

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct TfLiteModel;
struct TfLiteInterpreterOptions;
struct TfLiteInterpreter;
struct TfLiteOpaqueContext;
struct TfLiteOpaqueDelegate;
struct TfLiteOpaqueNode;
struct TfLiteOperator;
struct TfLiteOpaqueTensor;
enum TfLiteStatus { kTfLiteOk = 0 };
struct TfLiteIntArray {
    int size;
    int data[1];
};
struct TfLiteTensor {
    int type;
    void *data;
    TfLiteIntArray *dims;
    uint32_t params[2];
    int allocation_type;
    size_t bytes;
    const void *allocation;
    const char *name;
    void *delegate;
    int buffer_handle;
    bool data_is_stale, is_variable;
};
static_assert(offsetof(TfLiteTensor, bytes) == 40 && offsetof(TfLiteTensor, is_variable) == 77, "64 bits");
struct TfLiteCustomAllocation {
    void *data;
    size_t bytes;
};
struct TfLiteOpaqueDelegateBuilder {
    void *data;
    TfLiteStatus (*Prepare)(TfLiteOpaqueContext *, TfLiteOpaqueDelegate *, void *);
    TfLiteStatus (*CopyFromBufferHandle)(TfLiteOpaqueContext *, TfLiteOpaqueDelegate *, void *, int, TfLiteOpaqueTensor *);
    TfLiteStatus (*CopyToBufferHandle)(TfLiteOpaqueContext *, TfLiteOpaqueDelegate *, void *, int, TfLiteOpaqueTensor *);
    void (*FreeBufferHandle)(TfLiteOpaqueContext *, TfLiteOpaqueDelegate *, void *, int *);
    int64_t flags;
};

inline void *&tflite_library() {
    static void *handle = nullptr;
    return handle;
}

inline void *tflite_symbol(const char *name) {
    void *symbol = dlsym(tflite_library(), name);
    if (symbol == nullptr) {
        std::fprintf(stderr, "the library has no %s\n", name);
        std::exit(1);
    }
    return symbol;
}

#define FORWARD(result, name, parameters, arguments)                                              \
    inline result name parameters {                                                               \
        static const auto f = reinterpret_cast<result(*) parameters>(tflite_symbol(#name));       \
        return f arguments;                                                                       \
    }

FORWARD(TfLiteModel *, TfLiteModelCreateFromFile, (const char *path), (path))
FORWARD(void, TfLiteModelDelete, (TfLiteModel * m), (m))
FORWARD(TfLiteInterpreter *, TfLiteInterpreterCreate, (const TfLiteModel *m, const TfLiteInterpreterOptions *o), (m, o))
FORWARD(void, TfLiteInterpreterDelete, (TfLiteInterpreter * i), (i))
FORWARD(TfLiteStatus, TfLiteInterpreterAllocateTensors, (TfLiteInterpreter * i), (i))
FORWARD(TfLiteStatus, TfLiteInterpreterInvoke, (TfLiteInterpreter * i), (i))
FORWARD(TfLiteStatus, TfLiteInterpreterResizeInputTensor, (TfLiteInterpreter * i, int n, const int *d, int k), (i, n, d, k))
FORWARD(int, TfLiteInterpreterGetInputTensorCount, (const TfLiteInterpreter *i), (i))
FORWARD(int, TfLiteInterpreterGetOutputTensorCount, (const TfLiteInterpreter *i), (i))
FORWARD(TfLiteTensor *, TfLiteInterpreterGetInputTensor, (const TfLiteInterpreter *i, int n), (i, n))
FORWARD(const TfLiteTensor *, TfLiteInterpreterGetOutputTensor, (const TfLiteInterpreter *i, int n), (i, n))
FORWARD(TfLiteTensor *, TfLiteInterpreterGetTensor, (const TfLiteInterpreter *i, int n), (i, n))
FORWARD(TfLiteStatus, TfLiteInterpreterSetCustomAllocationForTensor,
        (TfLiteInterpreter * i, int n, const TfLiteCustomAllocation *a, int64_t flags), (i, n, a, flags))
FORWARD(TfLiteStatus, TfLiteInterpreterModifyGraphWithDelegate, (const TfLiteInterpreter *i, TfLiteOpaqueDelegate *d), (i, d))
FORWARD(TfLiteOpaqueDelegate *, TfLiteOpaqueDelegateCreate, (const TfLiteOpaqueDelegateBuilder *b), (b))
FORWARD(void, TfLiteOpaqueDelegateDelete, (TfLiteOpaqueDelegate * d), (d))
FORWARD(size_t, TfLiteOpaqueContextGetNumTensors, (const TfLiteOpaqueContext *c), (c))
FORWARD(TfLiteStatus, TfLiteOpaqueContextGetInputs, (const TfLiteOpaqueContext *c, const int **l, int *n), (c, l, n))
FORWARD(TfLiteStatus, TfLiteOpaqueContextGetOutputs, (const TfLiteOpaqueContext *c, const int **l, int *n), (c, l, n))
FORWARD(TfLiteStatus, TfLiteOpaqueContextGetVariables, (const TfLiteOpaqueContext *c, const int **l, int *n), (c, l, n))
FORWARD(TfLiteStatus, TfLiteOpaqueContextGetExecutionPlan, (TfLiteOpaqueContext * c, TfLiteIntArray **p), (c, p))
FORWARD(TfLiteStatus, TfLiteOpaqueContextGetNodeAndRegistration,
        (TfLiteOpaqueContext * c, int n, TfLiteOpaqueNode **node, TfLiteOperator **op), (c, n, node, op))
FORWARD(TfLiteStatus, TfLiteOpaqueNodeInputs, (const TfLiteOpaqueNode *c, const int **l, int *n), (c, l, n))
FORWARD(TfLiteStatus, TfLiteOpaqueNodeOutputs, (const TfLiteOpaqueNode *c, const int **l, int *n), (c, l, n))
#undef FORWARD

#endif
