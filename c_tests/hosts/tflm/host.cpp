/* Runs models in a TensorFlow Lite Micro library that is loaded in this process, with its own planner or with arenite's.
 * A shared library for run.py: the wheel's library needs the symbols of a Python process. */
#include "planner_types.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

constexpr Micro::Status Micro::kOk, Micro::kError;

/* TfLiteTensor as the micro build has it, up to what is read here; run.py compares the sizes with the model's. */
struct MicroTensor {
    size_t quantization[2];
    uint32_t params[2];
    void *data;
    const void *dims;
    size_t bytes;
};
static_assert(offsetof(MicroTensor, data) == 24 && offsetof(MicroTensor, bytes) == 40, "64 bits");

struct Library {
    void *(*create_ours)(unsigned char *, size_t, mock::MicroMemoryPlanner *);
    void *(*create_own)(unsigned char *, size_t, int);
    void (*resolver)(void *);
    void *(*resources)(void *, int);
    void (*interpreter)(void *, const void *, const void *, void *, void *, void *);
    void (*destroy)(void *);
    int (*allocate)(void *);
    int (*invoke)(void *);
    MicroTensor *(*input)(void *, size_t);
    MicroTensor *(*output)(void *, size_t);
    size_t (*used)(const void *);
};

template <class F>
static bool find(void *handle, const char *name, F *out) {
    void *symbol = dlsym(handle, name);
    if (symbol == nullptr) {
        std::fprintf(stderr, "no %s: another version of the library\n", name);
        return false;
    }
    static_assert(sizeof symbol == sizeof *out, "a function pointer");
    std::memcpy(out, &symbol, sizeof symbol);
    return true;
}

static bool load(const char *path, Library *l) {
    void *h = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (h == nullptr) return false;
#define M "_ZN6tflite5micro"
    return find(h, M "14MicroAllocator6CreateEPhmPNS0_18MicroMemoryPlannerE", &l->create_ours) &&
           find(h, M "14MicroAllocator6CreateEPhmNS0_17MemoryPlannerTypeE", &l->create_own) &&
           find(h, "_ZN6tflite17PythonOpsResolverC1Ev", &l->resolver) &&
           find(h, M "22MicroResourceVariables6CreateEPNS0_14MicroAllocatorEi", &l->resources) &&
           find(h,
                M "16MicroInterpreterC1EPKNS_5ModelERKNS0_15MicroOpResolverEPNS0_14MicroAllocatorEPNS0_"
                  "22MicroResourceVariablesEPNS0_22MicroProfilerInterfaceE",
                &l->interpreter) &&
           find(h, M "16MicroInterpreterD1Ev", &l->destroy) && find(h, M "16MicroInterpreter15AllocateTensorsEv", &l->allocate) &&
           find(h, M "16MicroInterpreter6InvokeEv", &l->invoke) && find(h, M "16MicroInterpreter5inputEm", &l->input) &&
           find(h, M "16MicroInterpreter6outputEm", &l->output) &&
           find(h, "_ZNK6tflite5micro14MicroAllocator10used_bytesEv", &l->used);
#undef M
}

struct Run {
    Library library;
    arenite::tflm::Planner<Micro> planner;
    std::unique_ptr<unsigned char, void (*)(void *)> arena{nullptr, std::free};
    /* The library's objects, whose sizes only its headers know. */
    alignas(64) unsigned char resolver[65536];
    alignas(64) unsigned char interpreter[16384];
    void *allocator = nullptr;
    bool made = false;
};

extern "C" {

void tflm_close(Run *run);
Run *tflm_open(const char *library, const void *model, size_t arena_bytes, int ours, int resources);
size_t tflm_used(const Run *run);
void *tflm_tensor(Run *run, int output, size_t index, size_t *bytes);
int tflm_invoke(Run *run);

void tflm_close(Run *run) {
    if (run != nullptr && run->made) run->library.destroy(run->interpreter);
    delete run;
}

/* Null where the arena is too small or the library is not known. */
Run *tflm_open(const char *library, const void *model, size_t arena_bytes, int ours, int resources) {
    std::unique_ptr<Run, void (*)(Run *)> run(new Run, tflm_close);
    Library &l = run->library;
    if (!load(library, &l)) return nullptr;
    run->arena.reset(static_cast<unsigned char *>(std::aligned_alloc(16, (arena_bytes + 15) / 16 * 16)));
    if (run->arena == nullptr) return nullptr;
    run->allocator = ours ? l.create_ours(run->arena.get(), arena_bytes, &run->planner)
                          : l.create_own(run->arena.get(), arena_bytes, 0);
    if (run->allocator == nullptr) return nullptr;
    l.resolver(run->resolver);
    void *variables = resources > 0 ? l.resources(run->allocator, resources) : nullptr;
    uint32_t root;
    std::memcpy(&root, model, sizeof root);
    l.interpreter(run->interpreter, static_cast<const char *>(model) + root, run->resolver, run->allocator, variables, nullptr);
    run->made = true;
    if (l.allocate(run->interpreter) != 0) return nullptr;
    return run.release();
}

size_t tflm_used(const Run *run) { return run->library.used(run->allocator); }

void *tflm_tensor(Run *run, int output, size_t index, size_t *bytes) {
    MicroTensor *t = output ? run->library.output(run->interpreter, index) : run->library.input(run->interpreter, index);
    *bytes = t->bytes;
    return t->data;
}

int tflm_invoke(Run *run) { return run->library.invoke(run->interpreter); }

} // extern "C"
