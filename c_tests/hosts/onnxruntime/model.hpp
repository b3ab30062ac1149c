/* What a model takes and gives, and made-up data for it. */
#ifndef ORT_MODEL_HPP
#define ORT_MODEL_HPP

#include "api.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace ort {

using Dims = std::vector<std::int64_t>;

/* What the caller decides about inputs, by the names of the model. */
struct Wishes {
    std::map<std::string, std::int64_t> axes;   /* unknown dimensions; 1 otherwise */
    std::map<std::string, std::int64_t> values; /* what fills an integer input; 1 otherwise */
    std::map<std::string, std::int64_t> below;  /* an integer input is scattered over the numbers below this: words of a text */
};

struct Input {
    std::string name;
    int type = 0;
    Dims declared;
    std::vector<std::string> axes; /* names of the unknown dimensions, else empty */
    std::int64_t value = 1, below = 0;

    /* The shape in a run whose first input has `first`: what has the same name has the same size. */
    Dims beside(const Input &other, const Dims &first) const {
        Dims dims = declared;
        for (std::size_t i = 0; i < dims.size(); i++) {
            for (std::size_t j = 0; j < other.axes.size() && j < first.size() && !axes[i].empty(); j++) {
                if (axes[i] == other.axes[j]) {
                    dims[i] = first[j];
                }
            }
        }
        return dims;
    }
};

struct Model {
    std::vector<Input> inputs;
    std::vector<std::string> outputs;
};

inline Input describe_input(const Api &api, const Session *session, std::size_t index, const Wishes &wishes) {
    Allocator *usual = nullptr;
    char *name = nullptr;
    TypeInfo *info = nullptr;
    const ShapeInfo *shape = nullptr;
    std::size_t rank = 0;
    Input input;
    api.call(Entry::DefaultAllocator, &usual);
    api.call(Entry::InputName, session, index, usual, &name);
    input.name = name;
    usual->Free(usual, name);
    api.call(Entry::InputTypeInfo, session, index, &info);
    api.call(Entry::CastTypeInfo, info, &shape);
    if (shape == nullptr) {
        std::fprintf(stderr, "input %s is no tensor\n", input.name.c_str());
        std::exit(2);
    }
    api.call(Entry::ElementType, shape, &input.type);
    api.call(Entry::DimensionsCount, shape, &rank);
    input.declared.resize(rank);
    std::vector<const char *> axes(rank, "");
    api.call(Entry::Dimensions, shape, input.declared.data(), rank);
    api.call(Entry::SymbolicDimensions, shape, axes.data(), rank);
    for (std::size_t i = 0; i < rank; i++) {
        input.axes.push_back(axes[i] != nullptr && input.declared[i] < 0 ? axes[i] : "");
        if (input.declared[i] < 0) {
            const auto wish = wishes.axes.find(axes[i] != nullptr ? axes[i] : "");
            input.declared[i] = wish != wishes.axes.end() ? wish->second : 1;
        }
    }
    api.release(Entry::ReleaseTypeInfo, info);
    if (element_bytes(input.type) == 0) {
        std::fprintf(stderr, "input %s: element type %d is not supported\n", input.name.c_str(), input.type);
        std::exit(2);
    }
    const auto value = wishes.values.find(input.name);
    input.value = value != wishes.values.end() ? value->second : 1;
    const auto below = wishes.below.find(input.name);
    input.below = below != wishes.below.end() ? below->second : 0;
    return input;
}

inline Model describe(const Api &api, const Session *session, const Wishes &wishes) {
    Model model;
    Allocator *usual = nullptr;
    std::size_t inputs = 0, outputs = 0;
    api.call(Entry::DefaultAllocator, &usual);
    api.call(Entry::InputCount, session, &inputs);
    api.call(Entry::OutputCount, session, &outputs);
    for (std::size_t i = 0; i < inputs; i++) {
        model.inputs.push_back(describe_input(api, session, i, wishes));
    }
    for (std::size_t i = 0; i < outputs; i++) {
        char *name = nullptr;
        api.call(Entry::OutputName, session, i, usual, &name);
        model.outputs.push_back(name);
        usual->Free(usual, name);
    }
    return model;
}

template <class T>
void fill(std::vector<char> &data, const Input &input) {
    T *at = reinterpret_cast<T *>(data.data());
    for (std::size_t i = 0; i < data.size() / sizeof(T); i++) {
        at[i] = static_cast<T>(input.below > 0 ? std::int64_t(i * 7919) % input.below : input.value);
    }
}

/* Made-up data: a repeating ramp for floats, zeros for other sizes of float, one number or scattered ones for integers. */
inline std::vector<char> made_up(const Dims &dims, const Input &input) {
    std::size_t count = 1;
    for (std::int64_t d : dims) {
        count *= static_cast<std::size_t>(d);
    }
    std::vector<char> data(count * element_bytes(input.type));
    switch (input.type) {
    case 1:
        for (std::size_t i = 0; i < count; i++) {
            reinterpret_cast<float *>(data.data())[i] = float(i % 251) / 251.f;
        }
        break;
    case 2: case 3:
        fill<std::uint8_t>(data, input);
        break;
    case 6: case 12:
        fill<std::int32_t>(data, input);
        break;
    case 7: case 13:
        fill<std::int64_t>(data, input);
        break;
    default:
        break;
    }
    return data;
}

} // namespace ort

#endif
