/*
 * The form of a model that needs least memory: as it is, or as ONNX Runtime writes it after its own optimizations. In the copy
 * nodes stand in the order in which they are executed, and the loader, which orders them anew by where they stand, comes
 * to another order of execution. For some models more tensors are then alive at once, for some fewer.
 */
#ifndef ORT_PREPARED_HPP
#define ORT_PREPARED_HPP

#include "loaded.hpp"

#include <numeric>
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

/* Loads the model on arenite in the form whose plan is smaller, judged by the largest shape. One session at a time. */
inline std::unique_ptr<Loaded> prepare(const Engine &engine, const Settings &settings, std::string *chosen) {
    const Folder home;
    const std::string copy = home / "optimized.onnx";
    const auto volume = [](const ort::Dims &dims) {
        return std::accumulate(dims.begin(), dims.end(), std::int64_t(1), std::multiplies<std::int64_t>());
    };
    ort::Dims largest;
    for (const ort::Dims &dims : settings.dims) {
        largest = largest.empty() || volume(dims) > volume(largest) ? dims : largest;
    }
    std::unique_ptr<Loaded> model(new Loaded(engine, settings, "arenite", settings.model, copy));
    if (model->error().empty()) {
        const std::uint64_t as_is = planned_bytes(*model, largest, home / "as-is");
        model.reset();
        model.reset(new Loaded(engine, settings, "arenite", copy));
        const std::uint64_t optimized =
            model->error().empty() ? planned_bytes(*model, largest, home / "optimized") : UINT64_MAX;
        /* Another order of execution changes no result; what else an engine may do to a model twice is not relied upon. */
        if (optimized < as_is && same_files(home / "as-is", home / "optimized")) {
            *chosen = "optimized copy";
            return model;
        }
    }
    *chosen = "as it is";
    model.reset();
    model.reset(new Loaded(engine, settings, "arenite", settings.model));
    return model;
}

#endif
