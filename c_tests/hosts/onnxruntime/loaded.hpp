/* A model in ONNX Runtime under one of the memory settings that are compared, and its runs. */
#ifndef ORT_LOADED_HPP
#define ORT_LOADED_HPP

#include "../resident.hpp"
#include "settings.hpp"

#include <arenite/onnxruntime.hpp>

#include <malloc.h>
#include <memory>

using OnArenite = arenite::onnxruntime::Allocator<ort::Allocator>;

/* The library and its environment. */
struct Engine {
    ort::Api api;
    ort::Env *env = nullptr;
    ort::MemoryInfo *cpu = nullptr;

    explicit Engine(const char *library) : api(library) {
        /* Nothing is logged: what fails says so by its status, and a warning that a copy is for this machine is no news. */
        api.call(ort::Entry::CreateEnv, 4, "arenite", &env);
        api.call(ort::Entry::CreateMemoryInfo, "Cpu", 0, 0, 0, &cpu);
    }
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;
    ~Engine() {
        api.release(ort::Entry::ReleaseEnv, env);
        api.release(ort::Entry::ReleaseMemoryInfo, cpu);
    }
};

class Loaded {
public:
    /*
     * Where `copy` is not empty, the engine writes the model there as it is after its optimizations. `shared` is a memory that
     * the caller has registered; null for one of its own. See `error`.
     */
    Loaded(const Engine &engine, const Settings &settings, const std::string &mode, const std::string &path,
           const std::string &copy = "", OnArenite *shared = nullptr);
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;
    ~Loaded();

    /* Empty where all is well. */
    const std::string &error() const { return error_; }
    /* Null where the memory is the engine's own. */
    const OnArenite *memory() const { return memory_; }

    /* A run with the shape whose turn it is; outputs go to the file, or to nowhere. Ends the program where it fails. */
    void run(int turn, std::FILE *out) const {
        const std::string error = attempt(turn, out);
        if (!error.empty()) {
            std::fprintf(stderr, "run: %s\n", error.c_str());
            std::exit(3);
        }
    }
    /* The same, with what the engine says. */
    std::string attempt(int turn, std::FILE *out) const {
        return attempt(settings_.dims.empty() ? ort::Dims() : settings_.dims[std::size_t(turn) % settings_.dims.size()], out);
    }
    std::string attempt(const ort::Dims &first, std::FILE *out) const;

private:
    void finish(std::vector<ort::Value *> &outputs, std::FILE *out) const;
    void write(ort::Value *value, std::FILE *out) const;

    const Engine &engine_;
    const Settings &settings_;
    std::unique_ptr<OnArenite> own_;
    OnArenite *memory_;
    ort::Options *options_ = nullptr;
    ort::Session *session_ = nullptr;
    ort::Model model_;
    bool frames_;
    std::string error_;
};

inline Loaded::Loaded(const Engine &engine, const Settings &settings, const std::string &mode, const std::string &path,
                      const std::string &copy, OnArenite *shared)
    : engine_(engine), settings_(settings), memory_(shared), frames_(mode == "arenite") {
    using ort::Entry;
    const ort::Api &api = engine.api;
    const bool ours = frames_ || mode == "pool";
    api.call(Entry::CreateSessionOptions, &options_);
    api.call(Entry::SetIntraOpNumThreads, options_, settings.threads);
    if (mode == "noarena" || mode == "plain") {
        api.call(Entry::DisableCpuMemArena, options_);
    }
    if (ours || mode == "nopattern" || mode == "plain") {
        api.call(Entry::DisableMemPattern, options_);
    }
    if (ours) {
        if (memory_ == nullptr) {
            own_.reset(new OnArenite());
            memory_ = own_.get();
            api.call(Entry::RegisterAllocator, engine.env, memory_->attach(engine.cpu));
        }
        api.call(Entry::AddSessionConfig, options_, "session.use_env_allocators", "1");
    }
    if (!copy.empty()) {
        api.call(Entry::SetOptimizedModelPath, options_, copy.c_str());
    }
    error_ = api.attempt(Entry::CreateSession, engine.env, path.c_str(), options_, &session_);
    if (ours) {
        memory_->settle();
    } else if (settings.settle) {
        malloc_trim(0);
    }
    if (error_.empty()) {
        model_ = describe(api, session_, settings.wishes);
    }
}

inline Loaded::~Loaded() {
    if (session_ != nullptr) {
        engine_.api.release(ort::Entry::ReleaseSession, session_);
    }
    if (own_) {
        engine_.api.call(ort::Entry::UnregisterAllocator, engine_.env, static_cast<const ort::MemoryInfo *>(engine_.cpu));
    }
    engine_.api.release(ort::Entry::ReleaseOptions, options_);
}

inline std::string Loaded::attempt(const ort::Dims &first, std::FILE *out) const {
    using ort::Entry;
    const ort::Api &api = engine_.api;
    std::vector<std::vector<char>> data;
    std::vector<const ort::Value *> inputs;
    std::vector<const char *> input_names, output_names;
    arenite::Signature signature;
    for (const ort::Input &input : model_.inputs) {
        const ort::Dims dims = inputs.empty() && !first.empty() ? first : input.beside(model_.inputs[0], first);
        ort::Value *value = nullptr;
        data.push_back(ort::made_up(dims, input));
        api.call(Entry::CreateTensorWithData, engine_.cpu, static_cast<void *>(data.back().data()), data.back().size(),
                 dims.data(), dims.size(), input.type, &value);
        inputs.push_back(value);
        input_names.push_back(input.name.c_str());
        signature.shape(dims.data(), dims.size());
    }
    for (const std::string &name : model_.outputs) {
        output_names.push_back(name.c_str());
    }
    std::vector<ort::Value *> outputs(output_names.size(), nullptr);
    std::string error;
    {
        std::unique_ptr<arenite::Frame> frame(frames_ ? new arenite::Frame(*memory_, signature) : nullptr);
        error = api.attempt(Entry::Run, session_, static_cast<const ort::RunOptions *>(nullptr),
                            static_cast<const char *const *>(input_names.data()),
                            static_cast<const ort::Value *const *>(inputs.data()), inputs.size(),
                            static_cast<const char *const *>(output_names.data()), outputs.size(), outputs.data());
        if (!settings_.keep_outputs && error.empty()) {
            finish(outputs, out);
        }
    }
    if (error.empty()) {
        finish(outputs, out);
    }
    for (const ort::Value *value : inputs) {
        api.release(Entry::ReleaseValue, const_cast<ort::Value *>(value));
    }
    return error;
}

inline void Loaded::finish(std::vector<ort::Value *> &outputs, std::FILE *out) const {
    for (ort::Value *value : outputs) {
        if (out != nullptr) {
            write(value, out);
        }
        engine_.api.release(ort::Entry::ReleaseValue, value);
    }
    outputs.clear();
}

inline void Loaded::write(ort::Value *value, std::FILE *out) const {
    using ort::Entry;
    const ort::Api &api = engine_.api;
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

#endif
