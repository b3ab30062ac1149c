/* The document's lines for an interpreter of TensorFlow Lite's C++ interface. */
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "tflite_custom_scope.inc"

namespace tflite {

struct IntArray {
    int size;
    int data[1];
};
struct Tensor {
    int allocation_type;
    size_t bytes;
    bool is_variable;
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

class Interpreter {
  public:
    size_t tensors_size() const { return 0; }
    Tensor *tensor(int) { return &tensor_; }
    const std::vector<int> &execution_plan() const { return none_; }
    const std::pair<Node, Registration> *node_and_registration(int) const { return &node_; }
    const std::vector<int> &inputs() const { return none_; }
    const std::vector<int> &outputs() const { return none_; }
    const std::vector<int> &variables() const { return none_; }
    int SetCustomAllocationForTensor(int, const Allocation &, int64_t) { return 1; }
    int AllocateTensors() { return 0; }
    int ReleaseNonPersistentMemory() { return 0; }

  private:
    std::vector<int> none_;
    Tensor tensor_{};
    std::pair<Node, Registration> node_{};
};

} // namespace tflite

void tflite_custom_snippet(std::unique_ptr<tflite::Interpreter> interpreter);
void tflite_custom_snippet(std::unique_ptr<tflite::Interpreter> interpreter) {
#include "tflite_custom_body.inc"
}
