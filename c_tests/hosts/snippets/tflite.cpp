/* The document's lines for TensorFlow Lite's Subgraph. */
#include "../tflite/planner_types.hpp"

namespace tflite {
using MemoryPlanner = mock::MemoryPlanner;
using GraphInfo = mock::GraphInfo;
} // namespace tflite
using TfLiteContext = mock::Context;
using TfLiteStatus = mock::Status;
constexpr TfLiteStatus kTfLiteOk = mock::kMockOk, kTfLiteError = mock::kMockError;
constexpr int kDefaultTensorAlignment = 64;

#include "tflite_scope.inc"

namespace {

class Subgraph {
  public:
    std::unique_ptr<tflite::GraphInfo> CreateGraphInfo() { return nullptr; }
    void EnsureMemoryPlanner() {
#include "tflite_body.inc"
    }

  private:
    TfLiteContext context_{};
    bool preserve_all_tensors_ = false;
    int subgraph_index_ = 0;
    std::unique_ptr<tflite::MemoryPlanner> memory_planner_;
};

} // namespace

void tflite_snippet();
void tflite_snippet() { Subgraph().EnsureMemoryPlanner(); }
