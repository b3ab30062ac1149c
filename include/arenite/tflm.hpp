/*
 * arenite as TensorFlow Lite Micro's memory planner.
 *
 *   #include "tensorflow/lite/micro/memory_planner/micro_memory_planner.h"
 *   #include <arenite/tflm.hpp>
 *
 *   struct Micro {
 *     using MemoryPlanner = tflite::MicroMemoryPlanner;   // tflite::micro::MicroMemoryPlanner in newer versions
 *     using Status = TfLiteStatus;
 *     static constexpr Status kOk = kTfLiteOk, kError = kTfLiteError;
 *   };
 *   static arenite::tflm::Planner<Micro> planner;
 *   tflite::MicroAllocator *allocator = tflite::MicroAllocator::Create(arena, arena_bytes, &planner);
 *   tflite::MicroInterpreter interpreter(model, resolver, allocator);
 *
 * The arena is never larger than with TFLM's greedy planner: its rule is one of the three that are tried. An offline plan
 * (`arenite export --tflm-offline`) goes further, and needs no planner of ours on the device.
 *
 * Header only, over two functions of the C interface that need no heap: link with the `bare` archive or any other. No
 * heap, exceptions, RTTI, globals or C library; C++11. Threads: one at a time, as TFLM.
 */
#ifndef ARENITE_TFLM_HPP
#define ARENITE_TFLM_HPP

#include <arenite.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

namespace arenite {
namespace tflm {

/* Newer versions of the interface ask this and give no answer of their own, older ones do not ask: hence no `override`,
 * and a class apart, where none of the functions has one. */
template <class Base>
class Reuses : public Base {
  public:
    virtual bool preserves_all_tensors() const { return false; }

#if !__STDC_HOSTED__ || defined(TF_LITE_STATIC_MEMORY)
    /* A virtual destructor refers to one; there is no heap. */
    static void operator delete(void *) {}
#endif
};

template <class Host>
class Planner final : public Reuses<typename Host::MemoryPlanner> {
    using Status = typename Host::Status;

  public:
    /* `alignment`: of every offset that is not from an offline plan; a power of two. TFLM's sizes come rounded up to 16
     * and the start of its arena is aligned to no more, so that more than 16 only helps where the caller's arena is
     * aligned and nothing stands before the tensors. */
    explicit Planner(int alignment = 16) : alignment_(alignment) {}

    /* The same, planning in `workspace` (any address) instead of the free part of the arena. It is needed until the
     * offsets have been read, and must hold `scratch_bytes(n)` for n buffers. */
    Planner(void *workspace, size_t bytes, int alignment = 16)
        : alignment_(alignment), own_(static_cast<unsigned char *>(workspace)), own_bytes_(bytes) {}

    Planner(const Planner &) = delete;
    Planner &operator=(const Planner &) = delete;
    ~Planner() override {}

    /* Bytes of the free part of the arena, or of the workspace, that planning `count` buffers needs. */
    static size_t scratch_bytes(int count) {
        size_t work = 0;
        const uint64_t n = count > 0 ? static_cast<uint64_t>(count) : 0;
        if (arenite_bare_place_bytes(n, &work) != ARENITE_OK || work > SIZE_MAX / 2) return SIZE_MAX;
        const size_t each = sizeof(arenite_row_t) + sizeof(uint64_t);
        if (n > (SIZE_MAX / 2 - alignof(arenite_row_t)) / each) return SIZE_MAX;
        return alignof(arenite_row_t) - 1 + static_cast<size_t>(n) * each + work;
    }

    /* Begins a plan: buffers of an earlier model are forgotten. */
    Status Init(unsigned char *scratch, int bytes) override {
        unsigned char *from = own_ != nullptr ? own_ : scratch;
        size_t size = own_ != nullptr ? own_bytes_ : bytes > 0 ? static_cast<size_t>(bytes) : 0;
        if (from == nullptr) size = 0;
        const size_t over = reinterpret_cast<uintptr_t>(from) % alignof(arenite_row_t);
        const size_t skip = over != 0 ? alignof(arenite_row_t) - over : 0;
        scratch_ = from;
        scratch_bytes_ = size;
        rows_ = reinterpret_cast<arenite_row_t *>(from + (skip < size ? skip : 0));
        count_ = 0;
        arena_ = 0;
        planned_ = false;
        return Host::kOk;
    }

    Status AddBuffer(int size, int first, int last) override { return Add(size, first, last, -1); }

    /* An offset from an offline plan is kept as it is: overlaps with others from there are the plan's own affair. */
    Status AddBuffer(int size, int first, int last, int offline_offset) override {
        return Add(size, first, last, offline_offset);
    }

    /* Bytes from the start of the arena to the end of the last buffer; 0 where they cannot be placed. */
    size_t GetMaximumMemorySize() override { return Plan() == Host::kOk ? arena_ : 0; }

    int GetBufferCount() override { return count_; }

    Status GetOffsetForBuffer(int buffer, int *offset) override {
        if (offset == nullptr || buffer < 0 || buffer >= count_) return Host::kError;
        if (Plan() != Host::kOk) return Host::kError;
        const arenite_row_t &row = rows_[buffer];
        *offset = static_cast<int>((row.flags & ARENITE_ROW_FIXED) != 0 ? row.fixed_offset : offsets()[buffer]);
        return Host::kOk;
    }

  private:
    uint64_t *offsets() const { return reinterpret_cast<uint64_t *>(rows_ + count_); }

    Status Add(int size, int first, int last, int offline_offset) {
        if (size < 0 || first < 0 || last < first || offline_offset < -1 || count_ == INT_MAX) return Host::kError;
        if (scratch_bytes(count_ + 1) > scratch_bytes_) return Host::kError;
        arenite_row_t row = {};
        row.bytes = static_cast<uint64_t>(size);
        row.first = static_cast<uint32_t>(first);
        row.last = static_cast<uint32_t>(last);
        row.alignment = static_cast<uint32_t>(alignment_);
        if (offline_offset >= 0) {
            row.fixed_offset = static_cast<uint64_t>(offline_offset);
            row.alignment = 1;
            row.flags = ARENITE_ROW_FIXED | ARENITE_ROW_SHARED;
        }
        rows_[count_++] = row;
        planned_ = false;
        return Host::kOk;
    }

    /* Places all buffers by each rule and keeps the smallest arena. Once that is done the scratch may be overwritten, as
     * far as nobody asks for an offset again: the size is kept here. */
    Status Plan() {
        if (planned_) return Host::kOk;
        static const uint32_t rules[] = {ARENITE_STRATEGY_TFLM_GREEDY, ARENITE_STRATEGY_GREEDY_BY_SIZE,
                                         ARENITE_STRATEGY_FIRST_FIT};
        uint64_t best = UINT64_MAX, arena = 0;
        uint32_t best_rule = rules[0], last_rule = rules[0];
        for (uint32_t rule : rules) {
            if (Place(rule, &arena) != ARENITE_OK) return Host::kError;
            last_rule = rule;
            if (arena < best) {
                best = arena;
                best_rule = rule;
            }
        }
        if (best > static_cast<uint64_t>(INT_MAX)) return Host::kError;
        if (best_rule != last_rule && Place(best_rule, &arena) != ARENITE_OK) return Host::kError;
        arena_ = static_cast<size_t>(best);
        planned_ = true;
        return Host::kOk;
    }

    arenite_status_t Place(uint32_t rule, uint64_t *arena) {
        if (count_ == 0) {
            *arena = 0;
            return ARENITE_OK;
        }
        unsigned char *work = reinterpret_cast<unsigned char *>(offsets() + count_);
        const size_t used = static_cast<size_t>(work - scratch_);
        return arenite_bare_place(rule, rows_, static_cast<uint64_t>(count_), work, scratch_bytes_ - used, offsets(), arena,
                                  nullptr);
    }

    int alignment_;
    unsigned char *own_ = nullptr;
    size_t own_bytes_ = 0;
    unsigned char *scratch_ = nullptr;
    size_t scratch_bytes_ = 0;
    arenite_row_t *rows_ = nullptr;
    int count_ = 0;
    size_t arena_ = 0;
    bool planned_ = false;
};

} // namespace tflm
} // namespace arenite

#endif
