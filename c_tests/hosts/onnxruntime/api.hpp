/*
 * The little of ONNX Runtime's C interface that the test program needs, reached at run time: its shared library comes in a
 * Python wheel, which has no header. The interface is a table of functions that only ever grows at its end, so an
 * entry is named by its position. A program of yours includes onnxruntime_c_api.h instead.
 */
#ifndef ORT_API_HPP
#define ORT_API_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace ort {

struct Status;
struct Env;
struct Options;
struct RunOptions;
struct Session;
struct Value;
struct MemoryInfo;
struct TypeInfo;
struct ShapeInfo;

/* The host's allocator interface, up to what table 18 has. */
struct Allocator {
    std::uint32_t version;
    void *(*Alloc)(Allocator *, std::size_t);
    void (*Free)(Allocator *, void *);
    const MemoryInfo *(*Info)(const Allocator *);
    void *(*Reserve)(Allocator *, std::size_t);
};

constexpr std::uint32_t TABLE = 18;

enum class Entry : int {
    ErrorMessage = 2,
    CreateEnv = 3,
    CreateSession = 7,
    Run = 9,
    CreateSessionOptions = 10,
    SetOptimizedModelPath = 11,
    DisableMemPattern = 17,
    DisableCpuMemArena = 19,
    SetIntraOpNumThreads = 24,
    InputCount = 30,
    OutputCount = 31,
    InputTypeInfo = 33,
    InputName = 36,
    OutputName = 37,
    CreateTensorWithData = 49,
    TensorData = 51,
    CastTypeInfo = 55,
    ElementType = 60,
    DimensionsCount = 61,
    Dimensions = 62,
    SymbolicDimensions = 63,
    ElementCount = 64,
    TypeAndShape = 65,
    CreateMemoryInfo = 68,
    DefaultAllocator = 78,
    ReleaseEnv = 92,
    ReleaseStatus = 93,
    ReleaseMemoryInfo = 94,
    ReleaseSession = 95,
    ReleaseValue = 96,
    ReleaseTypeInfo = 98,
    ReleaseShapeInfo = 99,
    ReleaseOptions = 100,
    AddSessionConfig = 130,
    RegisterAllocator = 176,
    UnregisterAllocator = 177
};

/* Element types, as the interface numbers them. */
inline std::size_t element_bytes(int type) {
    switch (type) {
    case 2: case 3: case 9: return 1;                 /* uint8, int8, bool */
    case 4: case 5: case 10: case 16: return 2;       /* uint16, int16, float16, bfloat16 */
    case 1: case 6: case 12: return 4;                /* float, int32, uint32 */
    case 7: case 11: case 13: return 8;               /* int64, double, uint64 */
    default: return 0;
    }
}

class Api {
public:
    /* Ends the program with status 77 where there is no such library: the test is then skipped. */
    explicit Api(const char *library) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            std::fprintf(stderr, "skipped: %s\n", dlerror());
            std::exit(77);
        }
        struct Base {
            const void *const *(*table)(std::uint32_t);
            const char *(*version)();
        };
        void *symbol = dlsym(handle, "OrtGetApiBase");
        const Base *base = symbol != nullptr ? reinterpret_cast<const Base *(*)()>(symbol)() : nullptr;
        entries_ = base != nullptr ? base->table(TABLE) : nullptr;
        if (entries_ == nullptr) {
            std::fprintf(stderr, "%s does not serve table %u\n", library, TABLE);
            std::exit(2);
        }
        version_ = base->version();
    }

    const char *version() const { return version_; }

    /* Calls an entry that returns a status. Empty, or what the host says went wrong. */
    template <class... A>
    std::string attempt(Entry entry, A... arguments) const {
        Status *status = function<Status *(*)(A...)>(entry)(arguments...);
        if (status == nullptr) {
            return "";
        }
        const std::string message = function<const char *(*)(const Status *)>(Entry::ErrorMessage)(status);
        release(Entry::ReleaseStatus, status);
        return message.empty() ? "unknown error" : message;
    }

    /* The same for what has no reason to fail: a failure ends the program. */
    template <class... A>
    void call(Entry entry, A... arguments) const {
        const std::string message = attempt(entry, arguments...);
        if (!message.empty()) {
            std::fprintf(stderr, "entry %d: %s\n", static_cast<int>(entry), message.c_str());
            std::exit(3);
        }
    }

    template <class T>
    void release(Entry entry, T *object) const {
        function<void (*)(T *)>(entry)(object);
    }

private:
    template <class F>
    F function(Entry entry) const {
        return reinterpret_cast<F>(const_cast<void *>(entries_[static_cast<int>(entry)]));
    }

    const void *const *entries_ = nullptr;
    const char *version_ = "";
};

} // namespace ort

#endif
