/*
 * ONNX Runtime on arenite where lifetimes cross: two sessions on one memory, a session that goes while a frame is open, runs that
 * fail in a frame, frames around several runs, and a memory that is gone before and after the environment.
 *
 *   lifetimes libonnxruntime.so DETECTOR OTHER    (two models with one image as input)
 *
 * Exit status: 0 all as it should be, 1 not, 77 no library.
 */
#include "measure.hpp"

namespace {

int wrong = 0;

void check(bool holds, const char *what) {
    std::printf("%s %s\n", holds ? "ok   " : "WRONG", what);
    wrong |= !holds;
}

std::string outputs(const Loaded &model, const ort::Dims &dims) {
    std::FILE *file = std::tmpfile();
    const std::string error = model.attempt(dims, file);
    std::string bytes(std::size_t(std::ftell(file)), '\0');
    std::rewind(file);
    bytes.resize(std::fread(&bytes[0], 1, bytes.size(), file));
    std::fclose(file);
    return error.empty() ? bytes : "failed: " + error;
}

void two_sessions_on_one_memory(const Engine &engine, const Settings &s, const char *a, const char *b) {
    const ort::Dims image = {1, 3, 320, 320}, small = {1, 3, 48, 192}, failing = {1, 3, 330, 330};
    std::string expected_a, expected_b;
    {
        const Loaded first(engine, s, "default", a), second(engine, s, "default", b);
        expected_a = outputs(first, image);
        expected_b = outputs(second, small);
    }
    OnArenite memory;
    engine.api.call(ort::Entry::RegisterAllocator, engine.env, memory.attach(engine.cpu));
    std::unique_ptr<Loaded> first(new Loaded(engine, s, "arenite", a, "", &memory));
    std::unique_ptr<Loaded> second(new Loaded(engine, s, "arenite", b, "", &memory));
    bool same = first->error().empty() && second->error().empty();
    for (int run = 0; run < 4; run++) {
        same = same && outputs(*first, image) == expected_a && outputs(*second, small) == expected_b;
    }
    check(same, "two sessions take turns on one memory");
    check(frame_stats(memory).instances == 1, "and in one area");
    same = true;
    for (int run = 0; run < 4; run++) {
        arenite::Frame both(memory, 7);
        same = same && outputs(*first, image) == expected_a && outputs(*second, small) == expected_b;
    }
    check(same, "frames nest around several runs");
    for (int run = 0; run < 4; run++) {
        same = same && outputs(*first, failing).compare(0, 6, "failed") == 0 && outputs(*first, image) == expected_a;
    }
    check(same, "a run that fails leaves the next ones alone");
    {
        arenite::Frame open(memory, 9);
        same = outputs(*first, image) == expected_a;
        first.reset();
        same = same && outputs(*second, small) == expected_b;
    }
    check(same && outputs(*second, small) == expected_b, "a session goes while a frame is open");
    second.reset();
    engine.api.call(ort::Entry::UnregisterAllocator, engine.env, static_cast<const ort::MemoryInfo *>(engine.cpu));
    memory.settle();
    const arenite_pool_stats_t pool = pool_stats(memory);
    check(pool.blocks == 0 && pool.bad_pointers == 0, "nothing is left, and nothing was freed twice");
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s libonnxruntime.so DETECTOR OTHER\n", argv[0]);
        return 2;
    }
    Settings s;
    {
        const Engine engine(argv[1]);
        two_sessions_on_one_memory(engine, s, argv[2], argv[3]);
        two_sessions_on_one_memory(engine, s, argv[2], argv[3]);
    }
    OnArenite late;
    {
        /* The memory outlives the environment. */
        const Engine engine(argv[1]);
        engine.api.call(ort::Entry::RegisterAllocator, engine.env, late.attach(engine.cpu));
        const Loaded model(engine, s, "arenite", argv[2], "", &late);
        check(model.attempt({1, 3, 320, 320}, nullptr).empty(), "an environment is made anew");
    }
    late.settle();
    check(pool_stats(late).blocks == 0, "an environment that goes without unregistering leaves nothing");
    return wrong;
}
