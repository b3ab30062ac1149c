/* arenite/tflite_custom_c.hpp in the real TensorFlow Lite C library: outputs with and without, and the heap that tensors take.
 *   custom libtensorflowlite_c.so (model.tflite or a directory of them)... */
#include "c_interface.h"

#include <arenite/tflite_custom_c.hpp>

#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

struct Types {
    using Interpreter = TfLiteInterpreter;
    using Builder = TfLiteOpaqueDelegateBuilder;
    using Context = TfLiteOpaqueContext;
    using Delegate = TfLiteOpaqueDelegate;
    using Node = TfLiteOpaqueNode;
    using Operator = TfLiteOperator;
    using IntArray = TfLiteIntArray;
    using Allocation = TfLiteCustomAllocation;
    using Status = TfLiteStatus;
};
using Host = arenite::tflite::CHost<Types>;
using Memory = arenite::tflite::CustomAllocations<Host>;

struct Outcome {
    bool ran = false;
    /* As loaded; and resized, with what was refused. */
    std::string outputs, resized, why;
    size_t heap = 0, arena = 0, total = 0, tensors = 0;
};

/* 0 where the C library is too old to say. */
static size_t heap() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

static void fill(TfLiteTensor *t, unsigned *state) {
    unsigned char *bytes = static_cast<unsigned char *>(t->data);
    for (size_t k = 0; k < t->bytes; k++) {
        *state = *state * 1664525u + 1013904223u;
        const float f = static_cast<float>(*state >> 8) / 16777216.0f;
        const uint32_t small = *state >> 30;
        if (t->type == 1 && k % 4 == 0) { /* float */
            std::memcpy(bytes + k, &f, 4);
        } else if (t->type == 2 && k % 4 == 0) { /* int32: perhaps a size */
            std::memcpy(bytes + k, &small, 4);
        } else if (t->type != 1 && t->type != 2) {
            bytes[k] = static_cast<unsigned char>(t->type == 6 ? *state >> 31 : *state >> 24); /* a boolean, else anything */
        }
    }
}

/* Three runs; `allocate` is the runtime's way or ours. */
static bool run(TfLiteInterpreter *i, const std::function<bool()> &allocate, std::string *outputs, std::string *why) {
    if (!allocate()) return false;
    unsigned state = 1;
    for (int r = 0; r < 3; r++) {
        for (int n = 0; n < TfLiteInterpreterGetInputTensorCount(i); n++) fill(TfLiteInterpreterGetInputTensor(i, n), &state);
        if (TfLiteInterpreterInvoke(i) != kTfLiteOk) {
            *why = "not invoked";
            return false;
        }
        for (int n = 0; n < TfLiteInterpreterGetOutputTensorCount(i); n++) {
            const TfLiteTensor *t = TfLiteInterpreterGetOutputTensor(i, n);
            if (t->data != nullptr) outputs->append(static_cast<const char *>(t->data), t->bytes);
        }
    }
    return true;
}

/* Batch 2 where the model takes that, then 1 again, so that sizes grow and shrink under the bound tensors. */
static bool resize(TfLiteInterpreter *i, int batch, const std::vector<std::vector<int>> &shapes) {
    for (size_t n = 0; n < shapes.size(); n++) {
        std::vector<int> shape = shapes[n];
        if (shape.empty()) continue;
        shape[0] *= batch;
        if (TfLiteInterpreterResizeInputTensor(i, static_cast<int>(n), shape.data(), static_cast<int>(shape.size())) != kTfLiteOk) return false;
    }
    return true;
}

/* What nobody writes has the value `noise`. */
static Outcome outcome(const char *path, bool ours, int noise) {
    Outcome o;
#ifdef M_PERTURB
    mallopt(M_PERTURB, noise);
#else
    (void)noise;
#endif
    TfLiteModel *model = TfLiteModelCreateFromFile(path);
    TfLiteInterpreter *i = model != nullptr ? TfLiteInterpreterCreate(model, nullptr) : nullptr;
    if (i == nullptr) {
        o.why = "not loaded";
        return o;
    }
    {
        Host host(i);
        Memory memory(&host);
        if (ours) {
            TfLiteInterpreter *other = TfLiteInterpreterCreate(model, nullptr);
            Host twin(other);
            if (!memory.Learn(&twin)) o.why = memory.message();
            TfLiteInterpreterDelete(other);
        }
        const size_t before = heap();
        auto allocate = [&]() {
            if (!ours) return TfLiteInterpreterAllocateTensors(i) == kTfLiteOk;
            if (memory.Apply()) return true;
            o.why = memory.message();
            return false;
        };
        o.ran = run(i, allocate, &o.outputs, &o.why);
        if (o.ran) {
            o.heap = heap() - before;
            o.arena = static_cast<size_t>(memory.arena_bytes());
            o.total = static_cast<size_t>(memory.total_bytes());
            o.tensors = memory.bound_tensors();
            std::vector<std::vector<int>> shapes;
            for (int n = 0; n < TfLiteInterpreterGetInputTensorCount(i); n++) {
                const TfLiteIntArray *d = TfLiteInterpreterGetInputTensor(i, n)->dims;
                shapes.emplace_back(d->data, d->data + d->size);
            }
            for (int batch : {2, 1, 3, 1}) {
                const bool done = resize(i, batch, shapes) && run(i, allocate, &o.resized, &o.why);
                o.resized += done ? "|done" : "|refused";
                if (!done) break;
            }
        }
        /* The interpreter goes before the memory. */
        TfLiteInterpreterDelete(i);
    }
    TfLiteModelDelete(model);
    return o;
}

static std::vector<std::string> models(int count, char **names) {
    std::vector<std::string> found;
    for (int a = 0; a < count; a++) {
        std::error_code gone;
        if (!std::filesystem::is_directory(names[a], gone)) {
            found.push_back(names[a]);
            continue;
        }
        for (const auto &entry : std::filesystem::recursive_directory_iterator(names[a])) {
            if (entry.path().extension() == ".tflite") found.push_back(entry.path().string());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    tflite_library() = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (tflite_library() == nullptr) {
        std::printf("SKIPPED: %s\n", dlerror());
        return 77;
    }
    int failed = 0, ran = 0;
    size_t bound = 0;
    std::printf("%-42s %8s %12s %12s %14s %14s\n", "model", "bound", "arena", "their sum", "heap, ours", "heap, alone");
    for (const std::string &path : models(argc - 2, argv + 2)) {
        const std::string file = path.substr(path.rfind('/') + 1);
        const char *name = file.c_str();
        const Outcome alone = outcome(path.c_str(), false, 0x11), again = outcome(path.c_str(), false, 0x77);
        const Outcome ours = outcome(path.c_str(), true, 0x3c);
        if (!alone.ran) {
            std::printf("%-42s not run by TensorFlow Lite alone: %s\n", name, alone.why.c_str());
            failed += ours.ran;
            continue;
        }
        ran++;
        bound += ours.tensors;
        /* Some models read what nobody wrote once they are resized, in the runtime alone too: no two runs are alike. */
        const bool defined = alone.resized == again.resized;
        if (!ours.ran || ours.outputs != alone.outputs || (defined && ours.resized != alone.resized)) {
            failed++;
            std::printf("%-42s WRONG: %s\n", name, !ours.ran ? ours.why.c_str() : ours.outputs != alone.outputs ? "other outputs" : "other outputs once resized");
            continue;
        }
        std::printf("%-42s %8zu %12zu %12zu %14zu %14zu%s\n", name, ours.tensors, ours.arena, ours.total, ours.heap, alone.heap,
                    defined ? "" : "  (resized: undefined in TFLite)");
        std::fflush(stdout);
    }
    std::printf("%d models, %zu tensors bound, %d wrong\n", ran, bound, failed);
    return failed == 0 && ran > 0 && bound > 0 ? 0 : 1;
}
