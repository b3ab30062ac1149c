/* The document's lines for ONNX Runtime. */
#include "onnxruntime_scope.inc"

namespace {

struct OrtMemoryInfo;
struct OrtAllocator {
    uint32_t version;
    void *(*Alloc)(OrtAllocator *, size_t);
    void (*Free)(OrtAllocator *, void *);
    const OrtMemoryInfo *(*Info)(const OrtAllocator *);
    void *(*Reserve)(OrtAllocator *, size_t);
};
enum { OrtDeviceAllocator, OrtMemTypeDefault };
struct Session;
/* Its functions in so far as the lines call them. */
struct Api {
    void CreateMemoryInfo(const char *, int, int, int, const OrtMemoryInfo **) const {}
    void RegisterAllocator(void *, OrtAllocator *) const {}
    void AddSessionConfigEntry(void *, const char *, const char *) const {}
    void DisableMemPattern(void *) const {}
    void CreateSession(void *, const char *, void *, Session **) const {}
    void Run(Session *, void *, const char *const *, void *const *, size_t, const char *const *, size_t, void **) const {}
};

} // namespace

void onnxruntime_snippet(void *env, void *options, const char *path, const int64_t *dims, size_t rank, void **values);
void onnxruntime_snippet(void *env, void *options, const char *path, const int64_t *dims, size_t rank, void **values) {
    const Api api, *const ort = &api;
    const OrtMemoryInfo *info = nullptr;
    Session *session = nullptr;
    const char *const *input_names = &path, *const *output_names = &path;
    void **inputs = values, **outputs = values;
#include "onnxruntime_body.inc"
}
