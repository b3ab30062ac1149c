/*
 * Memory for an engine that asks for its blocks one by one, with repeated sequences of requests served from a plan. Header
 * only, C++11, no exceptions, no RTTI; link arenite::arenite. The headers for ONNX Runtime and ncnn build on it.
 *
 *   arenite::Memory memory;
 *   for each input:
 *       arenite::Frame frame(memory, arenite::Signature().shape(dims, rank));
 *       // run the model; the engine's allocator calls memory.allocate and memory.release
 *       // read and release the outputs here: what is released before the frame ends is in the plan
 *
 * The first run of each signature takes its blocks from the pool and is recorded; its plan is made when the frame ends.
 * Later runs get their blocks at planned offsets of one area. A request that the plan does not expect, a block that is
 * released later than it was in the recording, a thread without a frame: all of those are served by the pool, and what
 * the pool cannot serve by the system's heap. Nothing fails that would not have failed without a plan. Where signatures do not
 * come back, recording stops but for one run in 16.
 *
 * Threads: any number may run at once, each with a frame of its own on its stack; frames that overlap have an area each, and
 * signatures take turns in them. A frame serves the thread that made it; other threads of the engine are served by the pool.
 */
#ifndef ARENITE_FRAMES_HPP
#define ARENITE_FRAMES_HPP

#include <arenite.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace arenite {

/* A number for the shapes of a run (FNV-1a, 64 bits). Add whatever else decides what is allocated, such as the model. */
class Signature {
public:
    /* Any whole number: a width, a batch, a dimension. */
    template <class Number>
    Signature &add(Number number) noexcept {
        const std::uint64_t word = static_cast<std::uint64_t>(number);
        for (int i = 0; i < 8; i++) {
            hash_ = (hash_ ^ ((word >> (8 * i)) & 0xff)) * 0x100000001b3u;
        }
        return *this;
    }

    /* One input's dimensions. */
    Signature &shape(const std::int64_t *dims, std::size_t rank) noexcept {
        add(rank);
        for (std::size_t i = 0; i < rank; i++) {
            add(dims[i]);
        }
        return *this;
    }

    operator std::uint64_t() const noexcept { return hash_; }

private:
    std::uint64_t hash_ = 0xcbf29ce484222325u;
};

class Frame;

/* The pool behind the allocator. Any thread. */
class Memory {
public:
    /*
     * Makes a pool. `options` may be null for these: addresses for 256 MiB at a time (pages are taken when they are first
     * written), 64 bytes after every block that kernels may read, and the system's heap where the pool cannot grow.
     * Without memory for a pool every request fails; see `ok`.
     */
    explicit Memory(const arenite_pool_options_t *options = nullptr) noexcept {
        arenite_pool_options_t usual;
        std::memset(&usual, 0, sizeof usual);
        usual.struct_size = sizeof usual;
        usual.growth = ARENITE_GROWTH_EXACT;
        usual.growth_bytes = sizeof(void *) > 4 ? std::size_t(256) << 20 : std::size_t(16) << 20;
        usual.fallback = ARENITE_FALLBACK_SYSTEM;
        usual.tail = ARENITE_TAIL_READABLE;
        usual.tail_bytes = 64;
        if (arenite_pool_create(options != nullptr ? options : &usual, &pool_, nullptr) != ARENITE_OK) {
            pool_ = nullptr;
        }
    }

    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    /* With blocks still live the pool stays, as their owners use it. */
    ~Memory() { (void)(arenite_pool_destroy(pool_, nullptr) == ARENITE_OK); }

    bool ok() const noexcept { return pool_ != nullptr; }

    /* For `arenite_pool_stats`, `arenite_frame_stats`, `arenite_frame_save` and so on. Null where there is none. */
    const arenite_pool_t *pool() const noexcept { return pool_; }

    /*
     * Gives back what is free, down to single pages: after loading a model, or before a long pause. Plans stay. With glibc
     * also what its own heap holds and does not use, which after loading a model is several MiB.
     */
    void settle() const noexcept {
        (void)(arenite_pool_trim(pool_, 0, nullptr) == ARENITE_OK);
#ifdef __GLIBC__
        malloc_trim(0);
#endif
    }

    /* A block at a multiple of 128, of this thread's frame if it has one. Null on failure. */
    void *allocate(std::size_t bytes) const noexcept;
    void release(void *data) const noexcept;

    /* For what lives as long as the model. */
    void *reserve(std::size_t bytes) const noexcept {
        void *data = nullptr;
        const arenite_status_t status =
            arenite_pool_alloc_hint(pool_, bytes, 0, 0, ARENITE_POOL_HINT_LONG, &data, nullptr);
        return status == ARENITE_OK ? data : nullptr;
    }

private:
    friend class Frame;

    arenite_frame_stats_t frames() const noexcept {
        arenite_frame_stats_t stats;
        std::memset(&stats, 0, sizeof stats);
        stats.struct_size = sizeof stats;
        (void)(arenite_frame_stats(pool_, &stats) == ARENITE_OK);
        return stats;
    }

    /*
     * Whether so many frames are recordings that plans do not pay: signatures that hardly ever come back (a text that
     * grows by a token a run), or more of them than plans are kept.
     */
    static bool restless(const arenite_frame_stats_t &stats) noexcept {
        return stats.recorded >= 16 && stats.recorded > stats.frames / 4;
    }

    /*
     * Before a run; false where it is to be served by the pool alone: then only signatures with a plan are replayed, and of
     * the others one in 16 is recorded.
     */
    bool begin(std::uint64_t signature) noexcept {
        const arenite_frame_stats_t stats = frames();
        std::size_t bytes = 0;
        return !restless(stats) || arenite_frame_save(pool_, signature, nullptr, 0, &bytes) == ARENITE_OK ||
               skipped_.fetch_add(1, std::memory_order_relaxed) % 16 == 15;
    }

    /* After a recording its pages are given back, since its plan needs fewer. */
    void end() noexcept {
        const arenite_frame_stats_t stats = frames();
        if (recorded_.exchange(stats.recorded, std::memory_order_relaxed) != stats.recorded && !restless(stats)) {
            (void)(arenite_pool_trim(pool_, 0, nullptr) == ARENITE_OK);
        }
    }

    arenite_pool_t *pool_ = nullptr;
    std::atomic<std::uint64_t> recorded_{0};
    std::atomic<std::uint64_t> skipped_{0};
};

/* One run on the thread that makes it, from here to the end of the scope. Frames on a thread nest. */
class Frame {
public:
    Frame(Memory &memory, std::uint64_t signature) noexcept : memory_(memory), outer_(current()) {
        if (!memory.begin(signature) ||
            arenite_frame_begin(memory.pool_, signature, &frame_, nullptr) != ARENITE_OK) {
            frame_ = nullptr;
        }
        current() = this;
    }

    Frame(const Frame &) = delete;
    Frame &operator=(const Frame &) = delete;

    ~Frame() {
        current() = outer_;
        if (frame_ != nullptr) {
            (void)(arenite_frame_end(frame_) == ARENITE_OK);
            memory_.end();
        }
    }

private:
    friend class Memory;

    static Frame *&current() noexcept {
        static thread_local Frame *top = nullptr;
        return top;
    }

    /* This thread's innermost frame of that memory. */
    static arenite_frame_t *find(const Memory *memory) noexcept {
        Frame *frame = current();
        while (frame != nullptr && &frame->memory_ != memory) {
            frame = frame->outer_;
        }
        return frame != nullptr ? frame->frame_ : nullptr;
    }

    Memory &memory_;
    Frame *outer_;
    arenite_frame_t *frame_ = nullptr;
};

inline void *Memory::allocate(std::size_t bytes) const noexcept {
    void *data = nullptr;
    const arenite_frame_t *frame = Frame::find(this);
    const arenite_status_t status = frame != nullptr ? arenite_frame_alloc(frame, bytes, 0, &data, nullptr)
                                                     : arenite_pool_alloc(pool_, bytes, 0, &data, nullptr);
    return status == ARENITE_OK ? data : nullptr;
}

inline void Memory::release(void *data) const noexcept {
    const arenite_frame_t *frame = Frame::find(this);
    /* A pointer that is not the pool's is refused and left alone: there is nobody to tell. */
    (void)((frame != nullptr ? arenite_frame_free(frame, data, nullptr) : arenite_pool_free(pool_, data, nullptr)) ==
           ARENITE_OK);
}

} // namespace arenite

#endif
