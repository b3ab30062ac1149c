/* Every header once more, in another order: they need nothing of each other's, and define nothing twice. */
#if __cplusplus >= 201703L
#include <arenite/pmr.hpp>
#endif
#include <arenite/xnnpack.h>

#include <arenite/tflm.hpp>

#include <arenite/tflite_custom_c.hpp>

#include <arenite/tflite_custom.hpp>

#include <arenite/tflite.hpp>

#include <arenite/onnxruntime.hpp>

#include <arenite/ncnn.hpp>

#include <arenite/ggml.hpp>

#include <arenite/frames.hpp>

#include <arenite/executorch.hpp>

int again();

int again() {
    arenite::Memory memory;
    arenite::Frame frame(memory, arenite::Signature().add(1));
    void *block = memory.allocate(1000);
    memory.release(block);
    return block != nullptr;
}
