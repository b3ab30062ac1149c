/*
 * The form of a model that needs least memory: as it is, or as ONNX Runtime writes it after its own optimizations. In the copy
 * nodes stand in the order in which they are executed, and the loader, which orders them anew by where they stand, comes
 * to another order of execution. For some models more tensors are then alive at once, for some fewer.
 */
#ifndef ORT_PREPARED_HPP
#define ORT_PREPARED_HPP

#include "loaded.hpp"

#include <numeric>
#include <sys/wait.h>
#include <unistd.h>

/* A folder that goes with its files. */
class Folder {
public:
    Folder() {
        char name[] = "/tmp/arenite-ort-XXXXXX";
        if (mkdtemp(name) == nullptr) {
            std::perror("mkdtemp");
            std::exit(1);
        }
        name_ = name;
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() {
        if (std::system(("rm -r '" + name_ + "'").c_str()) != 0) {
            std::fprintf(stderr, "%s stays\n", name_.c_str());
        }
    }
    std::string operator/(const std::string &file) const { return name_ + "/" + file; }

private:
    std::string name_;
};

inline bool same_files(const std::string &a, const std::string &b) {
    return std::system(("cmp -s '" + a + "' '" + b + "'").c_str()) == 0;
}

inline arenite_frame_stats_t frame_stats(const OnArenite &memory) {
    arenite_frame_stats_t stats{};
    stats.struct_size = sizeof stats;
    if (arenite_frame_stats(memory.pool(), &stats) != ARENITE_OK) {
        stats = arenite_frame_stats_t{};
    }
    return stats;
}

/* Records a run and replays it once. The bytes that the plan needs; outputs go to the file. */
inline std::uint64_t planned_bytes(const Loaded &model, const ort::Dims &dims, const std::string &outputs) {
    std::FILE *out = std::fopen(outputs.c_str(), "wb");
    const bool ran = out != nullptr && model.attempt(dims, out).empty() && model.attempt(dims, out).empty();
    if (out != nullptr) {
        std::fclose(out);
    }
    return ran ? frame_stats(*model.memory()).area_bytes : UINT64_MAX;
}

/* Writes the model to `copy` in the engine's form if that has the smaller plan, judged by the largest shape, and the same results. */
inline bool prefers_copy(const Settings &settings, const Folder &home, const std::string &copy) {
    const Engine engine(settings.library.c_str());
    const auto volume = [](const ort::Dims &dims) {
        return std::accumulate(dims.begin(), dims.end(), std::int64_t(1), std::multiplies<std::int64_t>());
    };
    ort::Dims largest;
    for (const ort::Dims &dims : settings.dims) {
        largest = largest.empty() || volume(dims) > volume(largest) ? dims : largest;
    }
    std::uint64_t bytes[2] = {UINT64_MAX, UINT64_MAX};
    const std::string outputs[2] = {home / "as-is", home / "optimized"};
    for (int k = 0; k < 2; k++) {
        const Loaded model(engine, settings, "arenite", k == 0 ? settings.model : copy, k == 0 ? copy : "");
        if (!model.error().empty()) {
            return false;
        }
        bytes[k] = planned_bytes(model, largest, outputs[k]);
    }
    /* Another order of execution changes no result; what else an engine may do to a model twice is not relied upon. */
    return bytes[1] < bytes[0] && same_files(outputs[0], outputs[1]);
}

/*
 * The file to load. The trial is a process of its own, as it would be a step of the build of an application that ships the
 * model: so it leaves nothing behind in the heap of the one that is measured. Call before there is any thread.
 */
inline std::string prepare(const Settings &settings, const Folder &home) {
    const std::string copy = home / "optimized.onnx";
    const pid_t process = fork();
    if (process == 0) {
        /* Without the destructors of what belongs to the parent, such as the folder. */
        _exit(prefers_copy(settings, home, copy) ? 0 : 1);
    }
    int status = 1;
    return process > 0 && waitpid(process, &status, 0) == process && status == 0 ? copy : settings.model;
}

#endif
