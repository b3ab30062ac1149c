/* The document's lines for ExecuTorch. */
#include "executorch_scope.inc"

namespace {

template <class T>
class Span {
  public:
    Span() {}
    Span(T *data, size_t size) : data_(data), size_(size) {}
    T *data() const { return data_; }
    size_t size() const { return size_; }

  private:
    T *data_ = nullptr;
    size_t size_ = 0;
};
class MemoryAllocator {
  public:
    MemoryAllocator(uint32_t, uint8_t *) {}
    virtual ~MemoryAllocator() {}
    virtual void *allocate(size_t, size_t = alignof(void *)) { return nullptr; }
    virtual uint8_t *base_address() const { return nullptr; }
    virtual uint32_t size() const { return 0; }
    virtual size_t used_size() const { return 0; }
    virtual size_t free_size() const { return 0; }
    virtual void reset() {}
};
struct HierarchicalAllocator {
    explicit HierarchicalAllocator(Span<Span<uint8_t>>) {}
};
struct MemoryManager {
    MemoryManager(MemoryAllocator *, HierarchicalAllocator *, MemoryAllocator *) {}
};
struct Meta {
    size_t count = 1;
    int64_t bytes = 1000;
    size_t num_memory_planned_buffers() const { return count; }
    const int64_t *memory_planned_buffer_size(size_t) const { return &bytes; }
};
struct Program {
    int load_method(const char *, MemoryManager *) const { return 0; }
};

} // namespace

void executorch_snippet(const arenite_pool_t *pool);
void executorch_snippet(const arenite_pool_t *pool) {
    const Meta about, *const meta = &about;
    const Program file, *const program = &file;
#include "executorch_body.inc"
    (void)loaded;
}
