/* What a model takes and gives, and made-up data for it. */
#ifndef ORT_MODEL_HPP
#define ORT_MODEL_HPP

#include "api.hpp"

#include <vector>

namespace ort {

using Dims = std::vector<std::int64_t>;

struct Model {
    Session *session = nullptr;
    std::vector<const char *> input_names, output_names;
    std::vector<Dims> declared;
    std::vector<int> types;
};

inline Model describe(const Api &api, Session *session) {
    Model model;
    model.session = session;
    Allocator *usual = nullptr;
    std::size_t inputs = 0, outputs = 0;
    api.call(Entry::DefaultAllocator, &usual);
    api.call(Entry::InputCount, session, &inputs);
    api.call(Entry::OutputCount, session, &outputs);
    for (std::size_t i = 0; i < inputs; i++) {
        char *name = nullptr;
        TypeInfo *info = nullptr;
        const ShapeInfo *shape = nullptr;
        int type = 0;
        std::size_t rank = 0;
        api.call(Entry::InputName, session, i, usual, &name);
        api.call(Entry::InputTypeInfo, session, i, &info);
        api.call(Entry::CastTypeInfo, info, &shape);
        api.call(Entry::ElementType, shape, &type);
        api.call(Entry::DimensionsCount, shape, &rank);
        Dims dims(rank);
        api.call(Entry::Dimensions, shape, dims.data(), rank);
        for (std::int64_t &d : dims) {
            d = d < 0 ? 1 : d;
        }
        api.release(Entry::ReleaseTypeInfo, info);
        if (element_bytes(type) == 0) {
            std::fprintf(stderr, "input %s: element type %d is not supported\n", name, type);
            std::exit(2);
        }
        model.input_names.push_back(name);
        model.declared.push_back(dims);
        model.types.push_back(type);
    }
    for (std::size_t i = 0; i < outputs; i++) {
        char *name = nullptr;
        api.call(Entry::OutputName, session, i, usual, &name);
        model.output_names.push_back(name);
    }
    return model;
}

/* Made-up data: a repeating ramp; integers are 16000, which sampling rates and indices of the usual models accept. */
inline std::vector<char> made_up(const Dims &dims, int type) {
    std::size_t count = 1;
    for (std::int64_t d : dims) {
        count *= static_cast<std::size_t>(d);
    }
    std::vector<char> data(count * element_bytes(type));
    for (std::size_t i = 0; i < count; i++) {
        if (type == 1) {
            reinterpret_cast<float *>(data.data())[i] = float(i % 251) / 251.f;
        } else if (type == 7 && dims.size() <= 1) {
            reinterpret_cast<std::int64_t *>(data.data())[i] = 16000;
        } else if (type == 6) {
            reinterpret_cast<std::int32_t *>(data.data())[i] = std::int32_t(i % 251);
        }
    }
    return data;
}

} // namespace ort

#endif
