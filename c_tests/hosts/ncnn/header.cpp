/* The allocator for ncnn, under a class with ncnn's interface and tensors that count references as ncnn's do. */
#include "check.h"

#include <arenite/ncnn.hpp>

#include <atomic>
#include <thread>
#include <vector>

namespace {

class HostAllocator {
public:
    virtual ~HostAllocator() {}
    virtual void *fastMalloc(size_t bytes) = 0;
    virtual void fastFree(void *data) = 0;
};

/* Data, then the count; the last to let go frees. */
class Mat {
public:
    Mat(HostAllocator *allocator, size_t bytes) : allocator_(allocator), bytes_((bytes + 3) / 4 * 4) {
        data_ = static_cast<unsigned char *>(allocator->fastMalloc(bytes_ + sizeof(std::atomic<int>)));
        if (data_ != nullptr) {
            new (data_ + bytes_) std::atomic<int>(1);
        }
    }
    Mat(const Mat &other) : allocator_(other.allocator_), data_(other.data_), bytes_(other.bytes_) { count()++; }
    Mat &operator=(const Mat &) = delete;
    ~Mat() {
        if (--count() == 0) {
            allocator_->fastFree(data_);
        }
    }
    unsigned char *data() { return data_; }

private:
    std::atomic<int> &count() { return *reinterpret_cast<std::atomic<int> *>(data_ + bytes_); }

    HostAllocator *allocator_;
    unsigned char *data_;
    size_t bytes_;
};

/* What vector kernels do: they read past the end. Only that it is allowed is tested; the sanitizer would tell. */
unsigned over_read(const unsigned char *data, size_t bytes) {
    unsigned sum = 0;
    for (size_t i = 0; i < bytes + 64; i++) {
        sum += const_cast<const volatile unsigned char *>(data)[i];
    }
    return sum;
}

using Memory = arenite::ncnn::Allocator<HostAllocator>;

arenite_frame_stats_t frames(const Memory &memory) {
    arenite_frame_stats_t stats;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    CHECK_OK(arenite_frame_stats(memory.pool(), &stats));
    return stats;
}

arenite_pool_stats_t pool(const Memory &memory) {
    arenite_pool_stats_t stats;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    CHECK_OK(arenite_pool_stats(memory.pool(), &stats));
    return stats;
}

void a_network_is_served_from_its_plan() {
    Memory memory;
    for (int run = 0; run < 6; run++) {
        const size_t width = run % 2 == 0 ? 3000 : 5000;
        arenite::Frame frame(memory, width);
        Mat *before = new Mat(&memory, width);
        for (int layer = 1; layer < 30; layer++) {
            const size_t bytes = width * size_t(1 + layer % 4);
            Mat *now = new Mat(&memory, bytes);
            Mat workspace(&memory, width / 3);
            CHECK_EQ(reinterpret_cast<uintptr_t>(now->data()) % 128, 0);
            memset(now->data(), layer, bytes);
            memset(workspace.data(), 0xff, width / 3);
            CHECK(over_read(now->data(), bytes) > 0);
            delete before;
            before = now;
        }
        CHECK_EQ(before->data()[0], 29);
        delete before;
    }
    CHECK_EQ(frames(memory).recorded, 2);
    CHECK_EQ(frames(memory).served, 4 * 59);
    memory.settle();
    CHECK_EQ(pool(memory).blocks, 0);
}

void the_last_reference_goes_on_any_thread() {
    Memory memory;
    HostAllocator *host = &memory;
    for (int run = 0; run < 3; run++) {
        std::vector<std::thread> threads;
        {
            arenite::Frame frame(memory, 1);
            for (int i = 0; i < 16; i++) {
                Mat mat(host, size_t(1000 * (i + 1)));
                mat.data()[0] = static_cast<unsigned char>(i);
                threads.emplace_back([mat, i]() mutable { CHECK_EQ(mat.data()[0], i); });
            }
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    }
    memory.settle();
    CHECK_EQ(pool(memory).blocks, 0);
    CHECK_EQ(pool(memory).bad_pointers, 0);
}

void no_memory_is_null() {
    alignas(128) static unsigned char buffer[4096];
    arenite_pool_options_t options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.source.kind = ARENITE_SOURCE_BUFFER;
    options.source.base = buffer;
    options.source.bytes = sizeof buffer;
    options.tail = ARENITE_TAIL_READABLE;
    options.tail_bytes = 64;
    Memory memory(&options);
    HostAllocator *host = &memory;
    void *small = host->fastMalloc(1000);
    CHECK(small != nullptr && host->fastMalloc(100000) == nullptr);
    host->fastFree(small);
    host->fastFree(nullptr);
    CHECK_EQ(pool(memory).blocks, 0);
}

} // namespace

int main() {
    RUN(a_network_is_served_from_its_plan);
    RUN_THREADS(the_last_reference_goes_on_any_thread);
    RUN(no_memory_is_null);
    return DONE();
}
