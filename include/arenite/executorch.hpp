/*
 * ExecuTorch's three kinds of memory from an arenite pool. Header only, C++11, no exceptions, no RTTI; link arenite::arenite.
 * Needs no header of ExecuTorch: `Base` is its `MemoryAllocator`, `Span` its `Span<uint8_t>`.
 *
 *   #include <arenite/executorch.hpp>
 *   using namespace executorch::runtime;
 *
 *   arenite::executorch::Buffers<Span<uint8_t>> planned(pool);       // lives as long as the Method
 *   for (size_t i = 0; i < meta->num_memory_planned_buffers(); i++)
 *       planned.add(*meta->memory_planned_buffer_size(i));           // false: no memory
 *   HierarchicalAllocator hierarchy({planned.data(), planned.size()});
 *   arenite::executorch::Allocator<MemoryAllocator> method(pool), temp(pool);
 *   MemoryManager manager(&method, &hierarchy, &temp);
 *   auto loaded = program->load_method(name, &manager);
 *
 * Planned buffers start at a multiple of 128, so that a program planned with MemoryPlanningPass(alignment=128) has every
 * tensor there. The allocators take chunks from the pool and hand out pieces; `reset` keeps one chunk, so that a temp
 * allocator, which is reset after every instruction, asks the pool only when an instruction needs more than any before.
 *
 * The pool outlives them all. Threads: one at a time per object, as ExecuTorch's own; the pool is any thread's.
 */
#ifndef ARENITE_EXECUTORCH_HPP
#define ARENITE_EXECUTORCH_HPP

#include <arenite.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace arenite {
namespace executorch {

/* The method or the temp allocator, which must be two objects. */
template <class Base>
class Allocator : public Base {
public:
    /* `chunk`: bytes taken from the pool at a time, at least; nothing before the first request. */
    explicit Allocator(const arenite_pool_t *pool, std::size_t chunk = std::size_t(16) << 10) noexcept
        : Base(0, nullptr), pool_(pool), chunk_(chunk) {}

    Allocator(const Allocator &) = delete;
    Allocator &operator=(const Allocator &) = delete;

    virtual ~Allocator() { release(nullptr); }

    /* Null where there is no memory or `alignment` is no power of two. 0 bytes have an address. */
    virtual void *allocate(std::size_t bytes, std::size_t alignment = alignof(void *)) {
        if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
            return nullptr;
        }
        requests_++;
        if (top_ == nullptr || !fits(bytes, alignment)) {
            if (!grow(bytes, alignment)) {
                return nullptr;
            }
        }
        const std::size_t lead = padding(top_->used, alignment);
        char *data = base(top_) + top_->used + lead;
        top_->used += lead + bytes;
        used_ += lead + bytes;
        peak_ = used_ > peak_ ? used_ : peak_;
        return data;
    }

    /* Ends every block at once. The largest chunk stays for what comes next. */
    virtual void reset() {
        if (top_ != nullptr) {
            Chunk *largest = top_;
            for (Chunk *c = top_; c != nullptr; c = c->below) {
                largest = c->bytes > largest->bytes ? c : largest;
            }
            release(largest);
            largest->below = nullptr;
            largest->used = 0;
            top_ = largest;
            total_ = largest->bytes;
        }
        used_ = 0;
    }

    /* Of the chunk in use; memory is not one range. */
    virtual std::uint8_t *base_address() const {
        return top_ != nullptr ? reinterpret_cast<std::uint8_t *>(base(top_)) : nullptr;
    }
    virtual std::uint32_t size() const { return static_cast<std::uint32_t>(total_ < UINT32_MAX ? total_ : UINT32_MAX); }
    virtual std::size_t used_size() const { return used_; }
    /* What the chunk in use still holds; more comes from the pool. */
    virtual std::size_t free_size() const { return top_ != nullptr ? top_->bytes - top_->used : 0; }

    /* Requests served, chunks taken from the pool, and the most bytes in use between two resets. */
    std::uint64_t requests() const { return requests_; }
    std::uint64_t chunks() const { return chunks_; }
    std::size_t peak() const { return peak_; }

private:
    /* At the start of its memory; a multiple of 128, so that what follows is aligned as well. */
    struct alignas(128) Chunk {
        Chunk *below;
        std::size_t bytes, used;
    };

    static char *base(Chunk *chunk) { return reinterpret_cast<char *>(chunk + 1); }

    std::size_t padding(std::size_t used, std::size_t alignment) const {
        return (alignment - (reinterpret_cast<std::uintptr_t>(base(top_)) + used) % alignment) % alignment;
    }

    bool fits(std::size_t bytes, std::size_t alignment) const {
        const std::size_t rest = top_->bytes - top_->used, lead = padding(top_->used, alignment);
        return lead <= rest && bytes <= rest - lead;
    }

    bool grow(std::size_t bytes, std::size_t alignment) {
        const std::size_t slack = alignment > sizeof(Chunk) ? alignment : 0;
        if (bytes > SIZE_MAX - sizeof(Chunk) - slack) {
            return false;
        }
        const std::size_t needed = bytes + slack > chunk_ ? bytes + slack : chunk_;
        void *data = nullptr;
        if (needed > SIZE_MAX - sizeof(Chunk) ||
            arenite_pool_alloc(pool_, needed + sizeof(Chunk), sizeof(Chunk), &data, nullptr) != ARENITE_OK) {
            return false;
        }
        Chunk *chunk = static_cast<Chunk *>(data);
        chunk->below = top_;
        chunk->bytes = needed;
        chunk->used = 0;
        top_ = chunk;
        total_ += needed;
        chunks_++;
        return true;
    }

    void release(const Chunk *keep) {
        for (Chunk *c = top_; c != nullptr;) {
            Chunk *below = c->below;
            if (c != keep) {
                (void)(arenite_pool_free(pool_, c, nullptr) == ARENITE_OK);
            }
            c = below;
        }
        top_ = nullptr;
    }

    const arenite_pool_t *pool_;
    const std::size_t chunk_;
    Chunk *top_ = nullptr;
    std::size_t total_ = 0, used_ = 0, peak_ = 0;
    std::uint64_t requests_ = 0, chunks_ = 0;
};

/* The planned buffers of a method, in order of their ids. */
template <class Span>
class Buffers {
public:
    explicit Buffers(const arenite_pool_t *pool) noexcept : pool_(pool) {}

    Buffers(const Buffers &) = delete;
    Buffers &operator=(const Buffers &) = delete;

    ~Buffers() {
        for (std::size_t i = 0; i < count_; i++) {
            (void)(arenite_pool_free(pool_, spans_[i].data(), nullptr) == ARENITE_OK);
        }
        delete[] spans_;
    }

    /* Adds the next buffer, of `bytes` bytes, filled with zeros. False where there is no memory; nothing has changed then. */
    bool add(std::int64_t bytes) {
        void *data = nullptr;
        if (bytes < 0 || static_cast<std::uint64_t>(bytes) > SIZE_MAX || !room() ||
            arenite_pool_alloc_zeroed(pool_, static_cast<std::size_t>(bytes), 0, &data, nullptr) != ARENITE_OK) {
            return false;
        }
        spans_[count_++] = Span(static_cast<std::uint8_t *>(data), static_cast<std::size_t>(bytes));
        return true;
    }

    Span *data() { return spans_; }
    std::size_t size() const { return count_; }

private:
    bool room() {
        if (count_ < capacity_) {
            return true;
        }
        const std::size_t more = capacity_ == 0 ? 4 : capacity_ * 2;
        Span *spans = new (std::nothrow) Span[more];
        if (spans == nullptr) {
            return false;
        }
        for (std::size_t i = 0; i < count_; i++) {
            spans[i] = spans_[i];
        }
        delete[] spans_;
        spans_ = spans;
        capacity_ = more;
        return true;
    }

    const arenite_pool_t *pool_;
    Span *spans_ = nullptr;
    std::size_t count_ = 0, capacity_ = 0;
};

} // namespace executorch
} // namespace arenite

#endif
