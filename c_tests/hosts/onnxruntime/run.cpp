/*
 * Runs any ONNX model in ONNX Runtime with its own memory settings and on arenite, and prints what each needs.
 *
 *   run --library libonnxruntime.so MODEL [--dims 1,3,640,640]... [--runs 6] [--threads 1] [--together 1] [--keep-outputs] [--settle] [--optimized]
 *       [--mode default|nopattern|noarena|plain|arenite|pool]
 *
 * Without --mode each setting runs in a process of its own, outputs are compared byte for byte, and a table is printed.
 * --dims is the first input's shape; several take turns. Other inputs have their declared shape, unknown dimensions 1.
 * --settle lets the engine alone give back what loading left in the C library's heap, as arenite does.
 * --optimized: all settings load a copy of the model that ONNX Runtime has optimized and written before. Its loader does less
 * then, and its order of execution is another one, which for some models needs less memory.
 * --together makes so many threads call Run at once. --keep-outputs releases outputs only after the frame has ended.
 * Exit status: 0 all outputs equal, 1 not, 77 no library.
 */
#include "../resident.hpp"
#include "model.hpp"

#include <arenite/onnxruntime.hpp>

#include <algorithm>
#include <malloc.h>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using ort::Dims;
using ort::Entry;
using ort::Model;

namespace {

struct Settings {
    std::string library, model, mode, outputs;
    std::vector<Dims> dims;
    int runs = 6, threads = 1, together = 1;
    bool keep_outputs = false, settle = false, optimized = false;
};

using OnArenite = arenite::onnxruntime::Allocator<ort::Allocator>;

struct Host {
    const ort::Api &api;
    const Settings &settings;
    const Model &model;
    const ort::MemoryInfo *cpu;
    OnArenite *memory; /* null: the engine's own */
    bool frames;

    void write(ort::Value *value, std::FILE *out) const {
        ort::ShapeInfo *shape = nullptr;
        std::size_t count = 0;
        int type = 0;
        void *data = nullptr;
        api.call(Entry::TypeAndShape, static_cast<const ort::Value *>(value), &shape);
        api.call(Entry::ElementCount, static_cast<const ort::ShapeInfo *>(shape), &count);
        api.call(Entry::ElementType, static_cast<const ort::ShapeInfo *>(shape), &type);
        api.call(Entry::TensorData, value, &data);
        api.release(Entry::ReleaseShapeInfo, shape);
        std::fwrite(data, ort::element_bytes(type), count, out);
    }

    void once(int run, std::FILE *out) const {
        std::vector<Dims> dims = model.declared;
        if (!settings.dims.empty()) {
            dims[0] = settings.dims[std::size_t(run) % settings.dims.size()];
        }
        std::vector<std::vector<char>> data;
        std::vector<const ort::Value *> inputs;
        arenite::Signature signature;
        for (std::size_t i = 0; i < dims.size(); i++) {
            ort::Value *value = nullptr;
            data.push_back(ort::made_up(dims[i], model.types[i]));
            api.call(Entry::CreateTensorWithData, cpu, static_cast<void *>(data[i].data()), data[i].size(),
                     static_cast<const std::int64_t *>(dims[i].data()), dims[i].size(), model.types[i], &value);
            inputs.push_back(value);
            signature.shape(dims[i].data(), dims[i].size());
        }
        std::vector<ort::Value *> outputs(model.output_names.size(), nullptr);
        {
            std::unique_ptr<arenite::Frame> frame;
            if (frames) {
                frame.reset(new arenite::Frame(*memory, signature));
            }
            api.call(Entry::Run, model.session, static_cast<const ort::RunOptions *>(nullptr),
                     static_cast<const char *const *>(model.input_names.data()),
                     static_cast<const ort::Value *const *>(inputs.data()), inputs.size(),
                     static_cast<const char *const *>(model.output_names.data()), outputs.size(), outputs.data());
            if (!settings.keep_outputs) {
                finish(outputs, out);
            }
        }
        finish(outputs, out);
        for (const ort::Value *value : inputs) {
            api.release(Entry::ReleaseValue, const_cast<ort::Value *>(value));
        }
    }

    void finish(std::vector<ort::Value *> &outputs, std::FILE *out) const {
        for (ort::Value *value : outputs) {
            write(value, out);
            api.release(Entry::ReleaseValue, value);
        }
        outputs.clear();
    }
};

double median(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

int run_mode(const Settings &s) {
    const ort::Api api(s.library.c_str());
    const bool ours = s.mode == "arenite" || s.mode == "pool";
    ort::Env *env = nullptr;
    ort::Options *options = nullptr;
    ort::MemoryInfo *cpu = nullptr;
    ort::Session *session = nullptr;
    std::unique_ptr<OnArenite> memory;
    api.call(Entry::CreateEnv, 2, "arenite", &env);
    api.call(Entry::CreateSessionOptions, &options);
    api.call(Entry::SetIntraOpNumThreads, options, s.threads);
    api.call(Entry::CreateMemoryInfo, "Cpu", 0, 0, 0, &cpu);
    if (s.mode == "noarena" || s.mode == "plain") {
        api.call(Entry::DisableCpuMemArena, options);
    }
    if (ours || s.mode == "nopattern" || s.mode == "plain") {
        api.call(Entry::DisableMemPattern, options);
    }
    if (ours) {
        memory.reset(new OnArenite());
        api.call(Entry::RegisterAllocator, env, memory->attach(cpu));
        api.call(Entry::AddSessionConfig, options, "session.use_env_allocators", "1");
    }
    if (s.mode == "optimize") {
        api.call(Entry::SetOptimizedModelPath, options, s.outputs.c_str());
    }
    api.call(Entry::CreateSession, env, s.model.c_str(), options, &session);
    if (s.mode == "optimize") {
        return 0;
    }
    if (ours) {
        memory->settle();
    } else if (s.settle) {
        malloc_trim(0);
    }
    const double loaded = hosts::resident_mib();
    const Model model = ort::describe(api, session);
    const Host host{api, s, model, cpu, memory.get(), s.mode == "arenite"};

    double first_peak = 0, later_peak = 0, first_ms = 0;
    std::vector<double> later_ms;
    if (s.together == 1) {
        std::FILE *out = std::fopen(s.outputs.empty() ? "/dev/null" : s.outputs.c_str(), "wb");
        const int shapes = std::max(1, int(s.dims.size()));
        for (int run = 0; run < s.runs * shapes; run++) {
            hosts::reset_peak();
            const double before = hosts::processor_ms();
            host.once(run, out);
            const double ms = hosts::processor_ms() - before, peak = hosts::peak_mib();
            const bool first = run < shapes;
            (first ? first_peak : later_peak) = std::max(first ? first_peak : later_peak, peak);
            first ? void(first_ms += ms / shapes) : later_ms.push_back(ms);
        }
        std::fclose(out);
    } else {
        /* Once alone, so that plans exist; then all at once. */
        std::FILE *out = std::fopen(s.outputs.empty() ? "/dev/null" : s.outputs.c_str(), "wb");
        hosts::reset_peak();
        host.once(0, out);
        std::fclose(out);
        first_peak = hosts::peak_mib();
        hosts::reset_peak();
        std::vector<std::thread> threads;
        const double before = hosts::processor_ms();
        for (int t = 0; t < s.together; t++) {
            threads.emplace_back([&, t] {
                const std::string name = s.outputs.empty() ? "/dev/null" : s.outputs + "." + std::to_string(t);
                std::FILE *mine = std::fopen(name.c_str(), "wb");
                for (int run = 0; run < s.runs; run++) {
                    host.once(run + t, mine);
                }
                std::fclose(mine);
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
        later_ms.push_back((hosts::processor_ms() - before) / (s.runs * s.together));
        later_peak = hosts::peak_mib();
    }
    std::printf("RESULT mode=%s loaded=%.1f files=%.1f first_peak=%.1f later_peak=%.1f first_ms=%.1f later_ms=%.1f "
                "least_ms=%.1f\n",
                s.mode.c_str(), loaded, hosts::file_mib(), first_peak, later_peak, first_ms, median(later_ms),
                later_ms.empty() ? 0 : *std::min_element(later_ms.begin(), later_ms.end()));
    if (ours) {
        arenite_frame_stats_t frames{};
        arenite_pool_stats_t pool{};
        frames.struct_size = sizeof frames;
        pool.struct_size = sizeof pool;
        if (arenite_frame_stats(memory->pool(), &frames) == ARENITE_OK &&
            arenite_pool_stats(memory->pool(), &pool) == ARENITE_OK) {
            std::printf("FRAMES frames=%llu recorded=%llu passed=%llu served=%llu mismatched=%llu waiting=%llu outside=%llu "
                        "area=%.1f pool_peak=%.1f regions=%llu fallback=%llu\n",
                        (unsigned long long)frames.frames, (unsigned long long)frames.recorded,
                        (unsigned long long)frames.passed, (unsigned long long)frames.served,
                        (unsigned long long)frames.mismatched, (unsigned long long)frames.waiting,
                        (unsigned long long)frames.outside, double(frames.area_bytes) / 1048576,
                        double(pool.peak_requested_bytes) / 1048576, (unsigned long long)pool.regions,
                        (unsigned long long)pool.fallback_blocks);
        }
    }
    api.release(Entry::ReleaseSession, session);
    if (ours) {
        api.call(Entry::UnregisterAllocator, env, static_cast<const ort::MemoryInfo *>(cpu));
    }
    api.release(Entry::ReleaseOptions, options);
    api.release(Entry::ReleaseEnv, env);
    api.release(Entry::ReleaseMemoryInfo, cpu);
    if (ours) {
        arenite_pool_stats_t pool{};
        pool.struct_size = sizeof pool;
        if (arenite_pool_trim(memory->pool(), 0, nullptr) != ARENITE_OK ||
            arenite_pool_stats(memory->pool(), &pool) != ARENITE_OK || pool.bad_pointers != 0) {
            std::printf("WRONG the pool was given pointers that are not its own\n");
            return 1;
        }
    }
    return 0;
}

bool same(const std::string &a, const std::string &b) {
    const std::string command = "cmp -s '" + a + "' '" + b + "'";
    return std::system(command.c_str()) == 0;
}

/* Runs this program with further arguments and returns what it prints; `status` as waitpid has it. */
std::string child(const std::vector<std::string> &arguments, int *status) {
    std::vector<char *> raw;
    for (const std::string &argument : arguments) {
        raw.push_back(const_cast<char *>(argument.c_str()));
    }
    raw.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) {
        std::perror("pipe");
        std::exit(1);
    }
    const pid_t process = fork();
    if (process == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execv("/proc/self/exe", raw.data());
        _exit(127);
    }
    close(ends[1]);
    std::string printed;
    char part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) {
        printed.append(part, std::size_t(got));
    }
    close(ends[0]);
    waitpid(process, status, 0);
    return printed;
}

/* Every setting in a process of its own. */
int compare(const Settings &s, char **argv, int argc) {
    char directory[] = "/tmp/arenite-ort-XXXXXX";
    if (mkdtemp(directory) == nullptr) {
        std::perror("mkdtemp");
        return 1;
    }
    const std::string home = directory;
    std::vector<std::string> arguments(argv, argv + argc);
    int status = 0, wrong = 0;
    if (s.optimized) {
        const std::string copy = home + "/optimized.onnx";
        (void)child({argv[0], "--library", s.library, s.model, "--mode", "optimize", "--outputs", copy}, &status);
        std::replace(arguments.begin(), arguments.end(), s.model, copy);
    }
    const char *modes[] = {"default", "nopattern", "noarena", "plain", "pool", "arenite"};
    const char *meaning[] = {"arena and pattern", "arena, no pattern", "pattern, no arena", "neither",
                             "arenite, no frames", "arenite, recorded frames"};
    std::printf("%s%s\n%-26s %8s %8s %11s %11s %9s %9s %9s  outputs\n", s.model.c_str(), s.optimized ? ", optimized copy" : "",
                "MiB resident; CPU ms", "of files", "loaded", "first peak", "later peak", "first run", "median", "least");
    for (int i = 0; i < 6 && WIFEXITED(status) && WEXITSTATUS(status) != 77; i++) {
        std::vector<std::string> one = arguments;
        one.insert(one.end(), {"--mode", modes[i], "--outputs", home + "/" + modes[i]});
        const std::string printed = child(one, &status);
        double loaded, files, first_peak, later_peak, first_ms, later_ms, least_ms;
        if (status != 0 || std::sscanf(printed.c_str(), "RESULT mode=%*s loaded=%lf files=%lf first_peak=%lf later_peak=%lf "
                                                        "first_ms=%lf later_ms=%lf least_ms=%lf", &loaded, &files, &first_peak,
                                       &later_peak, &first_ms, &later_ms, &least_ms) != 7) {
            std::printf("%-26s failed with status %d\n%s", meaning[i], status, printed.c_str());
            wrong = 1;
            continue;
        }
        bool equal = same(home + "/" + modes[i], home + "/default");
        for (int t = 0; s.together > 1 && t < s.together; t++) {
            const std::string end = "." + std::to_string(t);
            equal = equal && same(home + "/" + modes[i] + end, home + "/default" + end);
        }
        std::printf("%-26s %8.1f %8.1f %11.1f %11.1f %9.1f %9.1f %9.1f  %s\n%s", meaning[i], files, loaded, first_peak, later_peak,
                    first_ms, later_ms, least_ms, i == 0 ? "" : equal ? "equal" : "DIFFERENT",
                    printed.c_str() + printed.find('\n') + 1);
        std::fflush(stdout);
        wrong |= !equal;
    }
    if (std::system(("rm -r '" + home + "'").c_str()) != 0) {
        wrong = 1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 77 ? 77 : wrong;
}

} // namespace

int main(int argc, char **argv) {
    Settings s;
    for (int i = 1; i < argc; i++) {
        const std::string a = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (a == "--settle") {
            s.settle = true;
        } else if (a == "--optimized") {
            s.optimized = true;
        } else if (a == "--keep-outputs") {
            s.keep_outputs = true;
        } else if (a.rfind("--", 0) != 0) {
            s.model = a;
        } else if (i++, a == "--library") {
            s.library = value;
        } else if (a == "--mode") {
            s.mode = value;
        } else if (a == "--outputs") {
            s.outputs = value;
        } else if (a == "--runs") {
            s.runs = std::max(1, std::atoi(value));
        } else if (a == "--threads") {
            s.threads = std::max(1, std::atoi(value));
        } else if (a == "--together") {
            s.together = std::max(1, std::atoi(value));
        } else if (a == "--dims") {
            Dims dims;
            for (char *at = const_cast<char *>(value); *at != '\0'; at += *at == ',') {
                dims.push_back(std::strtoll(at, &at, 10));
            }
            s.dims.push_back(dims);
        } else {
            s.model.clear();
            break;
        }
    }
    if (s.library.empty() || s.model.empty()) {
        std::fprintf(stderr, "usage: %s --library libonnxruntime.so MODEL [--dims 1,3,640,640]... [--runs N] [--threads N]\n"
                             "       [--together N] [--keep-outputs] [--settle] [--optimized] [--mode default|nopattern|noarena|plain|pool|arenite]\n",
                     argv[0]);
        return 2;
    }
    return s.mode.empty() ? compare(s, argv, argc) : run_mode(s);
}
