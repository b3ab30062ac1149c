/* A library with TensorFlow Lite's constructor and nothing else of it: what a version that nobody knows looks like to the
 * preload library, which must leave it alone. */
#include <cstddef>
#include <memory>

struct TfLiteContext {
    size_t tensors;
};

namespace tflite {

class GraphInfo {
  public:
    virtual ~GraphInfo() {}
    virtual size_t num_tensors() const { return 7; }
};

class ArenaPlanner {
  public:
    ArenaPlanner(TfLiteContext *context, std::unique_ptr<GraphInfo> graph, bool preserve, int alignment, int subgraph);
    virtual ~ArenaPlanner() {}
    virtual int answer() const { return static_cast<int>(graph_->num_tensors()) * alignment_ - subgraph_; }

  private:
    std::unique_ptr<GraphInfo> graph_;
    int alignment_, subgraph_;
};

ArenaPlanner::ArenaPlanner(TfLiteContext *, std::unique_ptr<GraphInfo> graph, bool, int alignment, int subgraph)
    : graph_(std::move(graph)), alignment_(alignment), subgraph_(subgraph) {}

} // namespace tflite

/* 7 * 64 - 3 from this library's own planner. */
extern "C" int unknown_host_answer(void) {
    TfLiteContext context{0};
    std::unique_ptr<tflite::ArenaPlanner> planner(
        new tflite::ArenaPlanner(&context, std::unique_ptr<tflite::GraphInfo>(new tflite::GraphInfo), false, 64, 3));
    return planner->answer();
}
