/*
 * arenite/tflite_custom.hpp for the C interface of TensorFlow Lite, for instance the library in an Android package.
 *
 *   #include "tensorflow/lite/c/c_api.h"                 // also c_api_experimental.h and c_api_opaque.h
 *   #include <arenite/tflite_custom_c.hpp>
 *
 *   struct Types {
 *     using Interpreter = TfLiteInterpreter;           using Builder = TfLiteOpaqueDelegateBuilder;
 *     using Context = TfLiteOpaqueContext;             using Delegate = TfLiteOpaqueDelegate;
 *     using Node = TfLiteOpaqueNode;                   using Operator = TfLiteOperator;
 *     using IntArray = TfLiteIntArray;                 using Allocation = TfLiteCustomAllocation;
 *     using Status = TfLiteStatus;
 *   };
 *   arenite::tflite::CHost<Types> host(interpreter), twin(other);       // two interpreters of one model
 *   arenite::tflite::CustomAllocations<decltype(host)> memory(&host);
 *   memory.Learn(&twin);                                                // sizes, from the one that is destroyed now
 *   TfLiteInterpreterDelete(other);
 *   if (!memory.Apply()) fprintf(stderr, "%s\n", memory.message());     // the first allocation of `interpreter`
 *
 * Without Learn it works too, but the arena that the runtime takes to find the sizes stays, since this interface has no
 * way to release it. C++14, no exceptions, no RTTI. Threads: as the interpreter, one at a time.
 */
#ifndef ARENITE_TFLITE_CUSTOM_C_HPP
#define ARENITE_TFLITE_CUSTOM_C_HPP

#include <arenite/tflite_custom.hpp>

namespace arenite {
namespace tflite {

/* The C interface. It shows nodes to delegates only, so this registers one that takes none. Which operators may write over
 * their input it does not show at all: nothing is shared in place. Must outlive the interpreter. */
template <class Types>
class CHost {
    using Context = typename Types::Context;
    using Delegate = typename Types::Delegate;
    using Node = typename Types::Node;
    using Operator = typename Types::Operator;
    using Status = typename Types::Status;

  public:
    explicit CHost(typename Types::Interpreter *interpreter) : i_(interpreter) {
        typename Types::Builder builder{};
        builder.data = this;
        builder.Prepare = [](Context *c, Delegate *, void *self) {
            return static_cast<Status>(static_cast<CHost *>(self)->Read(c) ? 0 : 1);
        };
        /* Tensors whose shapes change are none of its business. */
        builder.flags = 1;
        delegate_ = TfLiteOpaqueDelegateCreate(&builder);
    }
    CHost(const CHost &) = delete;
    CHost &operator=(const CHost &) = delete;
    ~CHost() { TfLiteOpaqueDelegateDelete(delegate_); }

    bool Refresh() {
        read_ = false;
        return static_cast<int>(TfLiteInterpreterModifyGraphWithDelegate(i_, delegate_)) == 0 && read_;
    }
    size_t num_tensors() { return tensors_; }
    TensorInfo tensor(size_t t) {
        const auto *x = TfLiteInterpreterGetTensor(i_, static_cast<int>(t));
        return {x->bytes, static_cast<uint32_t>(x->allocation_type), x->is_variable};
    }
    size_t num_nodes() { return nodes_.size(); }
    NodeInfo node(size_t n) { return {Of(nodes_[n].inputs), Of(nodes_[n].outputs), 0}; }
    List inputs() { return Of(inputs_); }
    List outputs() { return Of(outputs_); }
    bool Bind(size_t t, void *data, size_t bytes) {
        typename Types::Allocation a{data, bytes};
        return static_cast<int>(TfLiteInterpreterSetCustomAllocationForTensor(i_, static_cast<int>(t), &a, 0)) == 0;
    }
    bool Allocate() { return static_cast<int>(TfLiteInterpreterAllocateTensors(i_)) == 0; }
    void Release() {}

  private:
    struct Lists {
        std::vector<int32_t> inputs, outputs;
    };
    static List Of(const std::vector<int32_t> &v) { return {v.data(), v.size()}; }
    static void Copy(const int *from, int count, std::vector<int32_t> *to) {
        to->assign(from, from + (from != nullptr && count > 0 ? count : 0));
    }

    bool Read(Context *context) {
        /* Called for each subgraph, the primary one first: the others are not ours to bind. */
        if (read_) return true;
        const int *list = nullptr;
        int count = 0;
        typename Types::IntArray *plan = nullptr;
        tensors_ = static_cast<size_t>(TfLiteOpaqueContextGetNumTensors(context));
        if (static_cast<int>(TfLiteOpaqueContextGetInputs(context, &list, &count)) != 0) return false;
        Copy(list, count, &inputs_);
        if (static_cast<int>(TfLiteOpaqueContextGetOutputs(context, &list, &count)) != 0) return false;
        Copy(list, count, &outputs_);
        if (static_cast<int>(TfLiteOpaqueContextGetExecutionPlan(context, &plan)) != 0) return false;
        nodes_.assign(static_cast<size_t>(plan->size), Lists());
        for (int n = 0; n < plan->size; n++) {
            Node *node = nullptr;
            Operator *op = nullptr;
            if (static_cast<int>(TfLiteOpaqueContextGetNodeAndRegistration(context, plan->data[n], &node, &op)) != 0) return false;
            Lists &to = nodes_[static_cast<size_t>(n)];
            if (static_cast<int>(TfLiteOpaqueNodeInputs(node, &list, &count)) != 0) return false;
            Copy(list, count, &to.inputs);
            if (static_cast<int>(TfLiteOpaqueNodeOutputs(node, &list, &count)) != 0) return false;
            Copy(list, count, &to.outputs);
        }
        read_ = true;
        return true;
    }

    typename Types::Interpreter *i_;
    Delegate *delegate_ = nullptr;
    bool read_ = false;
    size_t tensors_ = 0;
    std::vector<int32_t> inputs_, outputs_;
    std::vector<Lists> nodes_;
};

} // namespace tflite
} // namespace arenite

#endif
