/* The document's lines for TensorFlow Lite Micro. */
#include "../tflm/planner_types.h"

namespace tflite {

using MicroMemoryPlanner = mock::MicroMemoryPlanner;
class MicroAllocator {
  public:
    static MicroAllocator *Create(unsigned char *, size_t, MicroMemoryPlanner *) { return nullptr; }
};
struct Model {};
struct Resolver {};
class MicroInterpreter {
  public:
    MicroInterpreter(const Model *, const Resolver &, MicroAllocator *) {}
};

} // namespace tflite
using TfLiteStatus = mock::Status;
constexpr TfLiteStatus kTfLiteOk = mock::kMockOk, kTfLiteError = mock::kMockError;

namespace {
#define Micro DocumentMicro /* planner_types.h has one too */
#include "tflm_scope.inc"
} // namespace

void tflm_snippet(const tflite::Model *model, const tflite::Resolver &resolver, unsigned char *arena, size_t arena_bytes);
void tflm_snippet(const tflite::Model *model, const tflite::Resolver &resolver, unsigned char *arena, size_t arena_bytes) {
#include "tflm_body.inc"
    (void)interpreter;
}
