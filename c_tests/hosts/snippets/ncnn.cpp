/* The document's lines for ncnn, around an engine that asks for two blocks. */
#include <cstddef>

#include "ncnn_scope.inc"

namespace ncnn {

class Allocator {
  public:
    virtual ~Allocator() {}
    virtual void *fastMalloc(std::size_t bytes) = 0;
    virtual void fastFree(void *data) = 0;
};
struct Option {
    Allocator *blob_allocator = nullptr, *workspace_allocator = nullptr;
};
struct Mat {
    int w = 8, h = 4;
};
static int served;
struct Extractor {
    const Option &opt;
    void input(const char *, const Mat &) {}
    void extract(const char *, Mat &) {
        void *blob = opt.blob_allocator->fastMalloc(4100), *scratch = opt.workspace_allocator->fastMalloc(100);
        served += (blob != nullptr) + (scratch != nullptr);
        opt.workspace_allocator->fastFree(scratch);
        opt.blob_allocator->fastFree(blob);
    }
};
struct Net {
    Option opt;
    Extractor create_extractor() const { return Extractor{opt}; }
};

} // namespace ncnn

int ncnn_snippet();
int ncnn_snippet() {
    ncnn::Mat in, out;
    ncnn::Net net;
#include "ncnn_body.inc"
    return ncnn::served;
}
