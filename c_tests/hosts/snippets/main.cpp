/* What the document's lines need to link. That they compile is the test; two of them also run. */
#include <arenite/executorch.hpp>
#include <arenite/frames.hpp>
#include <arenite/ggml.hpp>
#include <arenite/ncnn.hpp>
#include <arenite/onnxruntime.hpp>
#include <arenite/tflite.hpp>
#include <arenite/tflite_custom.hpp>
#include <arenite/tflite_custom_c.hpp>
#include <arenite/tflm.hpp>
#include <arenite/xnnpack.h>

#include "check.h"

int again();
extern "C" int xnnpack_snippet(void);
int ncnn_snippet();

static void the_lines_for_ncnn_serve_blocks() { CHECK_EQ(ncnn_snippet(), 2); }
static void the_lines_for_xnnpack_serve_blocks() { CHECK_EQ(xnnpack_snippet(), 0); }
static void the_headers_are_in_two_translation_units() { CHECK_EQ(again(), 1); }

int main() {
    RUN(the_lines_for_ncnn_serve_blocks);
    RUN(the_lines_for_xnnpack_serve_blocks);
    RUN(the_headers_are_in_two_translation_units);
    return check_done();
}
