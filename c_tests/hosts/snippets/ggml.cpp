/* The document's lines for ggml, with what its public headers declare of what arenite/ggml.hpp uses. */
#include <cstddef>
#include <cstdio>

#define GGML_MAX_DIMS 4
#define GGML_MAX_SRC 10
enum ggml_op {
    GGML_OP_ADD, GGML_OP_SUB, GGML_OP_MUL, GGML_OP_DIV, GGML_OP_ADD1, GGML_OP_SCALE, GGML_OP_SQR, GGML_OP_SQRT, GGML_OP_LOG,
    GGML_OP_UNARY, GGML_OP_DIAG_MASK_INF, GGML_OP_DIAG_MASK_ZERO, GGML_OP_RMS_NORM, GGML_OP_ROPE, GGML_OP_SOFT_MAX,
    GGML_OP_MUL_MAT
};
enum ggml_status { GGML_STATUS_SUCCESS };
enum ggml_tensor_flag { GGML_TENSOR_FLAG_INPUT = 1, GGML_TENSOR_FLAG_OUTPUT = 2 };
struct ggml_backend_buffer {};
using ggml_backend_buffer_t = ggml_backend_buffer *;
struct ggml_tensor {
    int type;
    ggml_op op;
    int flags;
    ggml_tensor *src[GGML_MAX_SRC], *view_src;
    void *data;
    ggml_backend_buffer_t buffer;
};
struct ggml_cgraph {};
struct ggml_backend {};
static int ggml_graph_n_nodes(ggml_cgraph *) { return 0; }
static ggml_tensor *ggml_graph_node(ggml_cgraph *, int) { return nullptr; }
static std::size_t ggml_nbytes(const ggml_tensor *) { return 0; }
static bool ggml_are_same_shape(const ggml_tensor *, const ggml_tensor *) { return true; }
static bool ggml_are_same_stride(const ggml_tensor *, const ggml_tensor *) { return true; }
static ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *, std::size_t) { return nullptr; }
static void ggml_backend_buffer_free(ggml_backend_buffer_t) {}
static ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t, ggml_tensor *, void *) { return GGML_STATUS_SUCCESS; }
static ggml_status ggml_backend_view_init(ggml_tensor *) { return GGML_STATUS_SUCCESS; }
static void ggml_backend_graph_compute(ggml_backend *, ggml_cgraph *) {}

#include "ggml_scope.inc"

void ggml_snippet(ggml_backend *cpu, ggml_cgraph *graph);
void ggml_snippet(ggml_backend *cpu, ggml_cgraph *graph) {
#include "ggml_body.inc"
}
