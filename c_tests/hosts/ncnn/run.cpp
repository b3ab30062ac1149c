/*
 * A network with branches in ncnn, at three image sizes in turn, with its own allocators or arenite's.
 *
 *   run alone|pool|arenite OUTPUTS [NET.param NET.bin]
 *
 * alone: the heap. pool: ncnn's pool allocator. OUTPUTS gets every output's bytes. Without a net a made-up one is run; the
 * blobs of a net are `data` and `output`.
 */
#include "../resident.hpp"
#include "interface.hpp"

#include <arenite/ncnn.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

/* The engine frees through the allocator a Mat was made with, or its own heap, which the test never hands a Mat from. */
void ncnn::Mat::drop() {
    if (refcount != nullptr && __atomic_fetch_sub(refcount, 1, __ATOMIC_ACQ_REL) == 1 && allocator != nullptr) {
        allocator->fastFree(data);
    }
    data = nullptr;
    refcount = nullptr;
}

namespace {

/* The same over the C library, for the setting without a pool. */
class Heap final : public ncnn::Allocator {
public:
    void *fastMalloc(std::size_t bytes) override {
        requests++;
        return std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
    }
    void fastFree(void *data) override { std::free(data); }
    unsigned requests = 0;
};

/* Weights: a repeating ramp. A read of four bytes is the tag in front of a weight array and has to be 0. */
class MadeUp final : public ncnn::DataReader {
public:
    int scan(const char *, void *) const override { return 0; }
    std::size_t read(void *data, std::size_t bytes) const override {
        std::memset(data, 0, bytes);
        for (std::size_t i = 0; bytes > 4 && i < bytes / 4; i++) {
            seed_ = seed_ * 1103515245u + 12345u;
            static_cast<float *>(data)[i] = (float((seed_ >> 9) & 0xffff) / 65536.f - 0.5f) * 0.08f;
        }
        return bytes;
    }

private:
    mutable std::uint32_t seed_ = 7;
};

/* Blocks of three convolutions whose branches meet again, each at half the size of the one before. */
std::string network(int blocks) {
    std::string layers = "Input data 0 1 data\n";
    int count = 1, blobs = 1, channels = 3;
    std::string at = "data";
    for (int b = 0; b < blocks; b++) {
        const std::string n = std::to_string(b);
        const int wide = 24 + 8 * b;
        const auto convolution = [&](const std::string &name, const std::string &from, const std::string &to, int in, int out,
                                     int kernel, int stride) {
            layers += "Convolution " + name + " 1 1 " + from + " " + to + " 0=" + std::to_string(out) + " 1=" +
                      std::to_string(kernel) + " 3=" + std::to_string(stride) + " 4=" + std::to_string(kernel / 2) +
                      " 5=1 6=" + std::to_string(in * out * kernel * kernel) + " 9=1\n";
            count++;
            blobs++;
        };
        convolution("stem" + n, at, "a" + n, channels, wide, 3, 2);
        layers += "Split split" + n + " 1 2 a" + n + " b" + n + " c" + n + "\n";
        convolution("left" + n, "b" + n, "d" + n, wide, wide, 3, 1);
        convolution("right" + n, "c" + n, "e" + n, wide, wide / 2, 1, 1);
        layers += "Concat join" + n + " 2 1 d" + n + " e" + n + " f" + n + " 0=0\n";
        count += 2;
        blobs += 3;
        at = "f" + n;
        channels = wide + wide / 2;
    }
    layers += "Sigmoid out 1 1 " + at + " output\n";
    return "7767517\n" + std::to_string(count + 1) + " " + std::to_string(blobs + 1) + "\n" + layers;
}

int infer(const ncnn::Net &net, int side, ncnn::Allocator *blobs, ncnn::Allocator *workspace, std::FILE *out) {
    ncnn::Mat image, result;
    image.create(side, side, 3, sizeof(float), blobs);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < side * side; i++) {
            image.channel(k)[i] = float((i + k) % 251) / 251.f;
        }
    }
    {
        ncnn::Extractor extractor = net.create_extractor();
        extractor.set_light_mode(true);
        extractor.set_blob_allocator(blobs);
        extractor.set_workspace_allocator(workspace);
        if (extractor.input("data", image) != 0 || extractor.extract("output", result, 0) != 0) {
            std::fprintf(stderr, "the network does not run\n");
            return 1;
        }
    }
    for (int k = 0; k < result.c; k++) {
        std::fwrite(result.channel(k), sizeof(float), std::size_t(result.w) * std::size_t(result.h), out);
    }
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    std::FILE *out = argc == 3 || argc == 5 ? std::fopen(argv[2], "wb") : nullptr;
    if (out == nullptr) {
        std::fprintf(stderr, "usage: run alone|pool|arenite OUTPUTS [NET.param NET.bin]\n");
        return 2;
    }
    const std::string mode = argv[1];
    const bool real = argc == 5;
    /* Networks that enlarge a picture keep its size from layer to layer. */
    const int sides[] = {real ? 64 : 224, real ? 48 : 160, real ? 80 : 320};
    /* Before the net and everything made from it. */
    Heap heap;
    ncnn::UnlockedPoolAllocator own_blobs, own_workspace;
    arenite::ncnn::Allocator<ncnn::Allocator> memory;
    ncnn::Allocator *blobs = &heap, *workspace = &heap;
    if (mode == "pool") {
        blobs = &own_blobs;
        workspace = &own_workspace;
    } else if (mode == "arenite") {
        blobs = workspace = &memory;
    }
    ncnn::Net net;
    if (real ? net.load_param(argv[3]) != 0 || net.load_model(argv[4]) != 0
             : net.load_param_mem(network(4).c_str()) != 0 || net.load_model(MadeUp()) != 0) {
        std::fprintf(stderr, "the network does not load\n");
        return 1;
    }
    memory.settle();
    const double loaded = hosts::resident_mib();
    hosts::reset_peak();
    double first_peak = 0;
    const double started = hosts::processor_ms();
    for (int run = 0; run < 12; run++) {
        const int side = sides[run % 3];
        const unsigned before = heap.requests;
        std::unique_ptr<arenite::Frame> frame;
        if (mode == "arenite") {
            frame.reset(new arenite::Frame(memory, arenite::Signature().add(std::uint64_t(side))));
        }
        if (infer(net, side, blobs, workspace, out) != 0) {
            return 1;
        }
        frame.reset();
        if (mode == "alone" && run < 3) {
            std::printf("%dx%d: %u blocks per inference\n", side, side, heap.requests - before);
        }
        if (run == 2) {
            first_peak = hosts::peak_mib();
            hosts::reset_peak();
        }
    }
    std::printf("resident MiB: loaded %.1f, peak %.1f in the first round, %.1f later; %.1f ms of processor time a run\n", loaded,
                first_peak, hosts::peak_mib(), (hosts::processor_ms() - started) / 12);
    if (mode == "arenite") {
        arenite_frame_stats_t f{};
        arenite_pool_stats_t p{};
        f.struct_size = sizeof f;
        p.struct_size = sizeof p;
        if (arenite_frame_stats(memory.pool(), &f) != ARENITE_OK || arenite_pool_stats(memory.pool(), &p) != ARENITE_OK) {
            return 1;
        }
        std::printf("%llu frames, %llu recorded; %llu requests served from plans, %llu not; peak %llu bytes asked for, "
                    "areas %llu now\n",
                    (unsigned long long)f.frames, (unsigned long long)f.recorded, (unsigned long long)f.served,
                    (unsigned long long)(f.mismatched + f.waiting + f.outside), (unsigned long long)p.peak_requested_bytes,
                    (unsigned long long)f.area_bytes);
        if (f.recorded != 3 || f.served == 0 || f.mismatched + f.waiting + f.outside != 0 || p.bad_pointers != 0 ||
            arenite_pool_check(memory.pool(), nullptr) != ARENITE_OK) {
            std::fprintf(stderr, "not every request was served from a plan\n");
            return 1;
        }
    }
    /* The last reference goes on another thread than the one that made the block. */
    {
        auto *mat = new ncnn::Mat;
        mat->create(64, 64, 3, sizeof(float), blobs);
        std::thread([mat] { delete mat; }).join();
    }
    std::fclose(out);
    return 0;
}
