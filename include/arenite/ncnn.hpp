/*
 * ncnn's blobs and workspaces from an arenite pool. Header only, C++11, no exceptions, no RTTI; link arenite::arenite. Needs no
 * header of ncnn: `Base` is its `ncnn::Allocator`.
 *
 *   #include <ncnn/allocator.h>
 *   #include <arenite/ncnn.hpp>
 *
 *   arenite::ncnn::Allocator<ncnn::Allocator> memory;        // outlives every Mat made from it, outputs too
 *   net.opt.blob_allocator = &memory;                        // or extractor.set_blob_allocator(&memory)
 *   net.opt.workspace_allocator = &memory;                   // one for both: they then share bytes
 *   for each image:
 *       arenite::Frame frame(memory, arenite::Signature().add(width).add(height));
 *       ncnn::Extractor extractor = net.create_extractor();
 *       ...                                                  // Mats that go before the frame ends are in the plan
 *
 * Behind every block 64 bytes can be read, as ncnn's vector kernels do (NCNN_MALLOC_OVERREAD); they are not the block's own
 * and cost nothing. ncnn puts its reference count behind the data, so a block of 4096 bytes asks for 4100.
 *
 * Threads: any; the thread that drops a Mat's last reference frees it. What frames do: frames.hpp. ncnn is built without
 * RTTI as a rule, and a class derived from its own then has to be, too (-fno-rtti).
 */
#ifndef ARENITE_NCNN_HPP
#define ARENITE_NCNN_HPP

#include <arenite/frames.hpp>

namespace arenite {
namespace ncnn {

/* `options` as for `Memory`; those of a caller should have a tail of 64 bytes. */
template <class Base>
class Allocator final : public Base, public Memory {
public:
    explicit Allocator(const arenite_pool_options_t *options = nullptr) noexcept : Base(), Memory(options) {}

    /* Null where there is no memory, which ncnn reports as a failed layer. */
    void *fastMalloc(std::size_t bytes) override { return allocate(bytes); }
    void fastFree(void *data) override { release(data); }
};

} // namespace ncnn
} // namespace arenite

#endif
