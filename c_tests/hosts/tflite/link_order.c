/* A C program without Python that runs a model through the C++ symbols of a TensorFlow Lite library. Which planner it gets
 * is decided by the order in which it was linked.
 *   link_order model.tflite INPUT_TENSOR BYTES OUTPUT_TENSOR BYTES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct allocation {
    void *data;
    size_t bytes;
};

/* The C++ names of the functions used. Objects whose size only the library's headers know get plenty. */
void *_ZN6tflite20DefaultErrorReporterEv(void);
void _ZN6tflite4impl15FlatBufferModel13BuildFromFileEPKcPNS_13ErrorReporterE(void **model, const char *path, void *reporter);
void _ZN6tflite3ops7builtin17BuiltinOpResolverC1Ev(void *resolver);
void _ZN6tflite4impl18InterpreterBuilderC1ERKNS0_15FlatBufferModelERKNS_10OpResolverEPKNS_18InterpreterOptionsE(
    void *builder, void *model, void *resolver, void *options);
int _ZN6tflite4impl18InterpreterBuilderclEPSt10unique_ptrINS0_11InterpreterESt14default_deleteIS3_EE(void *builder,
                                                                                                     void **interpreter);
int _ZN6tflite4impl11Interpreter15AllocateTensorsEv(void *interpreter);
int _ZN6tflite4impl11Interpreter6InvokeEv(void *interpreter);
int _ZN6tflite4impl11Interpreter28SetCustomAllocationForTensorEiRK22TfLiteCustomAllocationl(void *interpreter, int tensor,
                                                                                            struct allocation *memory,
                                                                                            long flags);

static struct allocation block(const char *bytes) {
    struct allocation a;
    a.bytes = strtoul(bytes, NULL, 10);
    a.data = aligned_alloc(128, (a.bytes + 127) / 128 * 128);
    return a;
}

int main(int argc, char **argv) {
    enum { PLENTY = 65536 };
    void *model = NULL, *interpreter = NULL;
    char *resolver = aligned_alloc(64, PLENTY), *builder = aligned_alloc(64, PLENTY);
    struct allocation in, out;
    unsigned hash = 2166136261u, round;
    size_t k;
    if (argc != 6 || resolver == NULL || builder == NULL) {
        return 2;
    }
    _ZN6tflite4impl15FlatBufferModel13BuildFromFileEPKcPNS_13ErrorReporterE(&model, argv[1],
                                                                           _ZN6tflite20DefaultErrorReporterEv());
    if (model == NULL) {
        return 3;
    }
    _ZN6tflite3ops7builtin17BuiltinOpResolverC1Ev(resolver);
    _ZN6tflite4impl18InterpreterBuilderC1ERKNS0_15FlatBufferModelERKNS_10OpResolverEPKNS_18InterpreterOptionsE(
        builder, model, resolver, NULL);
    _ZN6tflite4impl18InterpreterBuilderclEPSt10unique_ptrINS0_11InterpreterESt14default_deleteIS3_EE(builder, &interpreter);
    if (interpreter == NULL || _ZN6tflite4impl11Interpreter15AllocateTensorsEv(interpreter) != 0) {
        return 4;
    }
    in = block(argv[3]);
    out = block(argv[5]);
    if (_ZN6tflite4impl11Interpreter28SetCustomAllocationForTensorEiRK22TfLiteCustomAllocationl(interpreter, atoi(argv[2]), &in, 0) ||
        _ZN6tflite4impl11Interpreter28SetCustomAllocationForTensorEiRK22TfLiteCustomAllocationl(interpreter, atoi(argv[4]), &out, 0) ||
        _ZN6tflite4impl11Interpreter15AllocateTensorsEv(interpreter) != 0) {
        return 5;
    }
    for (round = 0; round < 3; round++) {
        for (k = 0; k < in.bytes / sizeof(float); k++) {
            ((float *)in.data)[k] = (float)((k * 7 + round) % 31) / 31.0f - 0.5f;
        }
        if (_ZN6tflite4impl11Interpreter6InvokeEv(interpreter) != 0) {
            return 6;
        }
        for (k = 0; k < out.bytes; k++) {
            hash = (hash ^ ((unsigned char *)out.data)[k]) * 16777619u;
        }
    }
    printf("%08x\n", hash);
    return 0;
}
