/*
 * Graphs of several kinds in ggml, placed by its own graph allocator or by an arenite plan.
 *
 *   run alone|arenite OUTPUTS
 *
 * OUTPUTS gets every output's bytes. Both settings print the bytes of the compute buffer.
 */
#include <ggml.h>
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>

#include <arenite/ggml.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace {

void need(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "failed: %s\n", what);
        std::exit(1);
    }
}

double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* Weights, which have a buffer of their own, and the graph's tensors, which have none yet. */
struct Model {
    ggml_context *weights, *graph;
    std::vector<ggml_tensor *> made;
    std::size_t next = 0;

    ggml_tensor *weight(std::int64_t a, std::int64_t b, std::int64_t c = 1, std::int64_t d = 1) {
        if (next == made.size()) {
            made.push_back(ggml_new_tensor_4d(weights, GGML_TYPE_F32, a, b, c, d));
        }
        return made[next++];
    }
    ggml_tensor *input(std::int64_t a, std::int64_t b, std::int64_t c = 1) {
        ggml_tensor *t = ggml_new_tensor_3d(graph, GGML_TYPE_F32, a, b, c);
        ggml_set_input(t);
        return t;
    }
};

/* `length` tokens of width `d`: attention in `heads`, then a gated feed-forward net. */
ggml_tensor *transformer(Model &m, int layers, std::int64_t d, std::int64_t length, std::int64_t heads) {
    ggml_context *c = m.graph;
    ggml_tensor *x = m.input(d, length);
    for (int l = 0; l < layers; l++) {
        ggml_tensor *n = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), m.weight(d, 1));
        const auto split = [&](ggml_tensor *t) {
            return ggml_permute(c, ggml_reshape_3d(c, t, d / heads, heads, length), 0, 2, 1, 3);
        };
        ggml_tensor *q = split(ggml_mul_mat(c, m.weight(d, d), n));
        ggml_tensor *k = split(ggml_mul_mat(c, m.weight(d, d), n));
        ggml_tensor *v = split(ggml_mul_mat(c, m.weight(d, d), n));
        ggml_tensor *scores = ggml_scale(c, ggml_mul_mat(c, k, q), 1.f / std::sqrt(float(d / heads)));
        ggml_tensor *weighted = ggml_soft_max(c, ggml_diag_mask_inf(c, scores, 0));
        ggml_tensor *mixed = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, v)), weighted);
        ggml_tensor *joined = ggml_cont_2d(c, ggml_permute(c, mixed, 0, 2, 1, 3), d, length);
        x = ggml_add(c, x, ggml_mul_mat(c, m.weight(d, d), joined));
        ggml_tensor *f = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), m.weight(d, 1));
        ggml_tensor *gate = ggml_silu(c, ggml_mul_mat(c, m.weight(d, 4 * d), f));
        ggml_tensor *up = ggml_mul_mat(c, m.weight(d, 4 * d), f);
        x = ggml_add(c, x, ggml_mul_mat(c, m.weight(4 * d, d), ggml_mul(c, gate, up)));
    }
    return x;
}

/* Convolutions with a branch that joins again further on, which keeps early results alive. */
ggml_tensor *unet(Model &m, std::int64_t side) {
    ggml_context *c = m.graph;
    const auto convolution = [&](ggml_tensor *x, std::int64_t out, int stride) {
        return ggml_relu(c, ggml_conv_2d(c, m.weight(3, 3, x->ne[2], out), x, stride, stride, 1, 1, 1, 1));
    };
    ggml_tensor *x = m.input(side, side, 3);
    ggml_tensor *a = convolution(x, 16, 1);
    ggml_tensor *b = convolution(a, 24, 2);
    ggml_tensor *d = convolution(b, 32, 2);
    ggml_tensor *e = convolution(d, 32, 1);
    ggml_tensor *up = ggml_concat(c, ggml_upscale(c, e, 2, GGML_SCALE_MODE_NEAREST), b, 2);
    ggml_tensor *f = convolution(up, 24, 1);
    ggml_tensor *top = ggml_concat(c, ggml_upscale(c, f, 2, GGML_SCALE_MODE_NEAREST), a, 2);
    return convolution(top, 4, 1);
}

/* A residual chain with a source used twice, views written in place, and two outputs. */
ggml_tensor *views(Model &m, std::int64_t width) {
    ggml_context *c = m.graph;
    ggml_tensor *x = m.input(width, 8);
    ggml_tensor *y = ggml_sqr(c, ggml_add(c, x, m.weight(width, 8)));
    ggml_set_output(y);
    ggml_tensor *z = ggml_mul(c, y, y);
    ggml_tensor *half = ggml_view_2d(c, z, width / 2, 8, z->nb[1], z->nb[1] / 2);
    ggml_tensor *part = ggml_cont(c, half);
    ggml_tensor *w = ggml_scale_inplace(c, ggml_add(c, part, ggml_scale(c, part, 0.5f)), 2.f);
    ggml_tensor *joined = ggml_concat(c, w, ggml_sqr(c, w), 0);
    return ggml_sub(c, ggml_add(c, joined, z), ggml_log(c, ggml_add(c, ggml_sqr(c, z), y)));
}

int wrong = 0;

void run(const char *name, bool ours, std::FILE *out, const std::function<ggml_tensor *(Model &)> &build) {
    const ggml_init_params room{ggml_tensor_overhead() * 4096 + ggml_graph_overhead(), nullptr, true};
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 1);
    Model model{ggml_init(room), nullptr, {}, 0};
    ggml_backend_buffer_t weights = nullptr;
    ggml_gallocr_t allocator = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    arenite::ggml::Placement<> placement;
    double first_us = 0, later_us = 0;
    /* As a decoder does: the graph is built anew each time. */
    for (int round = 0; round < 3; round++) {
        model.graph = ggml_init(room);
        model.next = 0;
        ggml_tensor *output = build(model);
        ggml_set_output(output);
        ggml_cgraph *graph = ggml_new_graph(model.graph);
        ggml_build_forward_expand(graph, output);
        if (weights == nullptr) {
            weights = ggml_backend_alloc_ctx_tensors(model.weights, cpu);
            std::vector<float> values;
            for (ggml_tensor *t : model.made) {
                values.resize(std::size_t(ggml_nelements(t)));
                for (std::size_t i = 0; i < values.size(); i++) {
                    values[i] = 0.1f * (float((i * 37) % 101) / 101.f - 0.45f);
                }
                ggml_backend_tensor_set(t, values.data(), 0, ggml_nbytes(t));
            }
        }
        const double before = now_us();
        if (ours) {
            if (!placement.place(graph)) {
                std::fprintf(stderr, "%s: %s\n", name, placement.failure().message);
                std::exit(1);
            }
        } else {
            need(ggml_gallocr_alloc_graph(allocator, graph), "ggml_gallocr_alloc_graph");
        }
        (round == 0 ? first_us : later_us) = now_us() - before;
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            for (ggml_tensor *source : ggml_graph_node(graph, i)->src) {
                if (source != nullptr && (source->flags & GGML_TENSOR_FLAG_INPUT) != 0) {
                    std::vector<float> values(std::size_t(ggml_nelements(source)));
                    for (std::size_t k = 0; k < values.size(); k++) {
                        values[k] = float((k + std::size_t(round)) % 97) / 97.f;
                    }
                    ggml_backend_tensor_set(source, values.data(), 0, ggml_nbytes(source));
                }
            }
        }
        need(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "ggml_backend_graph_compute");
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            ggml_tensor *node = ggml_graph_node(graph, i);
            if ((node->flags & GGML_TENSOR_FLAG_OUTPUT) != 0) {
                std::vector<char> bytes(ggml_nbytes(node));
                ggml_backend_tensor_get(node, bytes.data(), 0, bytes.size());
                std::fwrite(bytes.data(), 1, bytes.size(), out);
            }
        }
        if (ours) {
            /* ggml's allocator has nothing left to do. */
            need(ggml_gallocr_alloc_graph(allocator, graph), "ggml_gallocr_alloc_graph after placement");
            need(ggml_gallocr_get_buffer_size(allocator, 0) == 0, "ggml's allocator took no memory of its own");
        }
        ggml_free(model.graph);
    }
    if (ours) {
        /* What ggml's allocator needs for the same graph. */
        model.graph = ggml_init(room);
        model.next = 0;
        ggml_tensor *output = build(model);
        ggml_set_output(output);
        ggml_cgraph *graph = ggml_new_graph(model.graph);
        ggml_build_forward_expand(graph, output);
        need(ggml_gallocr_reserve(allocator, graph), "ggml_gallocr_reserve");
        const std::size_t theirs = ggml_gallocr_get_buffer_size(allocator, 0);
        std::printf("%-28s %4zu tensors, arena %10llu of ggml's %10zu (%.3f), bound %10llu; %llu plans; %.0f us, again %.0f\n", name,
                    placement.tensors(), (unsigned long long)placement.bytes(), theirs, double(placement.bytes()) / double(theirs),
                    (unsigned long long)placement.lower_bound(), (unsigned long long)placement.plans(), first_us, later_us);
        if (placement.bytes() > theirs || placement.plans() != 1) {
            std::fprintf(stderr, "%s: above ggml's own planner, or planned more than once\n", name);
            wrong = 1;
        }
        ggml_free(model.graph);
    } else {
        std::printf("%-28s arena %10zu; %.0f us, again %.0f\n", name, ggml_gallocr_get_buffer_size(allocator, 0), first_us, later_us);
    }
    ggml_gallocr_free(allocator);
    ggml_backend_buffer_free(weights);
    ggml_free(model.weights);
    ggml_backend_free(cpu);
}

/* A decoder with a cache of keys and values: a prompt, then a token at a time, then the next prompt. */
struct Decoder {
    static const std::int64_t kWidth = 128, kHeads = 4, kRoom = 96, kLayers = 3;
    ggml_context *kept;
    ggml_tensor *keys[kLayers], *values[kLayers], *weights[kLayers][4];
    ggml_backend_buffer_t buffer;

    explicit Decoder(ggml_backend_t cpu) {
        kept = ggml_init({ggml_tensor_overhead() * 64, nullptr, true});
        for (std::int64_t l = 0; l < kLayers; l++) {
            keys[l] = ggml_new_tensor_2d(kept, GGML_TYPE_F32, kWidth, kRoom);
            values[l] = ggml_new_tensor_2d(kept, GGML_TYPE_F32, kWidth, kRoom);
            for (ggml_tensor *&w : weights[l]) {
                w = ggml_new_tensor_2d(kept, GGML_TYPE_F32, kWidth, kWidth);
            }
        }
        buffer = ggml_backend_alloc_ctx_tensors(kept, cpu);
        ggml_backend_buffer_clear(buffer, 0);
        std::vector<float> numbers(std::size_t(kWidth * kWidth));
        for (std::int64_t l = 0; l < kLayers; l++) {
            for (ggml_tensor *w : weights[l]) {
                for (std::size_t i = 0; i < numbers.size(); i++) {
                    numbers[i] = 0.1f * (float((i * 41 + std::size_t(l)) % 89) / 89.f - 0.5f);
                }
                ggml_backend_tensor_set(w, numbers.data(), 0, ggml_nbytes(w));
            }
        }
    }

    /* `count` tokens after `past`; what is seen of the cache is rounded up, so that graphs come back. */
    ggml_tensor *build(ggml_context *c, ggml_cgraph *graph, std::int64_t past, std::int64_t count, ggml_tensor **x_in,
                       ggml_tensor **mask) const {
        const std::int64_t seen = (past + count + 15) / 16 * 16, head = kWidth / kHeads;
        ggml_tensor *x = *x_in = ggml_new_tensor_2d(c, GGML_TYPE_F32, kWidth, count);
        *mask = ggml_new_tensor_2d(c, GGML_TYPE_F32, seen, count);
        ggml_set_input(*x_in);
        ggml_set_input(*mask);
        for (std::int64_t l = 0; l < kLayers; l++) {
            ggml_tensor *n = ggml_rms_norm(c, x, 1e-5f);
            const auto put = [&](ggml_tensor *cache, ggml_tensor *what) {
                ggml_tensor *to = ggml_view_2d(c, cache, kWidth, count, cache->nb[1], std::size_t(past) * cache->nb[1]);
                ggml_build_forward_expand(graph, ggml_cpy(c, what, to));
            };
            put(keys[l], ggml_mul_mat(c, weights[l][0], n));
            put(values[l], ggml_mul_mat(c, weights[l][1], n));
            const auto heads = [&](ggml_tensor *cache) {
                ggml_tensor *all = ggml_view_3d(c, cache, head, kHeads, seen, std::size_t(head) * 4, cache->nb[1], 0);
                return ggml_permute(c, all, 0, 2, 1, 3);
            };
            ggml_tensor *q = ggml_permute(c, ggml_reshape_3d(c, ggml_mul_mat(c, weights[l][2], n), head, kHeads, count), 0, 2, 1, 3);
            ggml_tensor *scores = ggml_soft_max_ext(c, ggml_mul_mat(c, heads(keys[l]), q), *mask, 0.2f, 0.f);
            ggml_tensor *mixed = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, heads(values[l]))), scores);
            x = ggml_add(c, x, ggml_mul_mat(c, weights[l][3], ggml_cont_2d(c, ggml_permute(c, mixed, 0, 2, 1, 3), kWidth, count)));
        }
        ggml_set_output(x);
        ggml_build_forward_expand(graph, x);
        return x;
    }
};

void decode(bool ours, std::FILE *out) {
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 1);
    const Decoder decoder(cpu);
    ggml_gallocr_t allocator = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    arenite::ggml::Placement<> placement;
    double us = 0;
    unsigned graphs = 0;
    std::uint64_t most = 0;
    for (int conversation = 0; conversation < 3; conversation++) {
        std::int64_t past = 0;
        for (int step = 0; step < 25; step++) {
            const std::int64_t count = step == 0 ? 30 : 1;
            ggml_context *c = ggml_init({ggml_tensor_overhead() * 512 + ggml_graph_overhead(), nullptr, true});
            ggml_cgraph *graph = ggml_new_graph(c);
            ggml_tensor *x = nullptr, *mask = nullptr;
            ggml_tensor *output = decoder.build(c, graph, past, count, &x, &mask);
            const double before = now_us();
            need(ours ? placement.place(graph) : ggml_gallocr_alloc_graph(allocator, graph), "the graph gets memory");
            us += now_us() - before;
            graphs++;
            most = placement.bytes() > most ? placement.bytes() : most;
            std::vector<float> numbers(std::size_t(ggml_nelements(x)));
            for (std::size_t i = 0; i < numbers.size(); i++) {
                numbers[i] = float((i * 7 + std::size_t(past + conversation)) % 31) / 31.f - 0.4f;
            }
            ggml_backend_tensor_set(x, numbers.data(), 0, ggml_nbytes(x));
            numbers.assign(std::size_t(ggml_nelements(mask)), 0.f);
            for (std::int64_t t = 0; t < count; t++) {
                for (std::int64_t k = past + t + 1; k < mask->ne[0]; k++) {
                    numbers[std::size_t(t * mask->ne[0] + k)] = -INFINITY;
                }
            }
            ggml_backend_tensor_set(mask, numbers.data(), 0, ggml_nbytes(mask));
            need(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "ggml_backend_graph_compute");
            std::vector<char> bytes(ggml_nbytes(output));
            ggml_backend_tensor_get(output, bytes.data(), 0, bytes.size());
            std::fwrite(bytes.data(), 1, bytes.size(), out);
            ggml_free(c);
            past += count;
        }
    }
    if (ours) {
        std::printf("%-28s %u graphs of 3 conversations, %llu plans; arena %llu; %.1f us a graph\n", "decoder, prompt and tokens",
                    graphs, (unsigned long long)placement.plans(), (unsigned long long)most, us / graphs);
        /* A prompt of 30, tokens that see 32, 48 and 64 of the cache. */
        if (placement.plans() != 4) {
            std::fprintf(stderr, "decoder: a kind of graph was planned more than once\n");
            wrong = 1;
        }
    } else {
        std::printf("%-28s %u graphs of 3 conversations; arena %zu; %.1f us a graph\n", "decoder, prompt and tokens", graphs,
                    ggml_gallocr_get_buffer_size(allocator, 0), us / graphs);
    }
    ggml_gallocr_free(allocator);
    ggml_backend_buffer_free(decoder.buffer);
    ggml_free(decoder.kept);
    ggml_backend_free(cpu);
}

} // namespace

int main(int argc, char **argv) {
    std::FILE *out = argc == 3 ? std::fopen(argv[2], "wb") : nullptr;
    if (out == nullptr) {
        std::fprintf(stderr, "usage: run alone|arenite OUTPUTS\n");
        return 2;
    }
    const bool ours = std::string(argv[1]) == "arenite";
    run("transformer 4x256, 128 long", ours, out, [](Model &m) { return transformer(m, 4, 256, 128, 4); });
    run("transformer 2x128, 300 long", ours, out, [](Model &m) { return transformer(m, 2, 128, 300, 8); });
    run("transformer 6x192, 1 token", ours, out, [](Model &m) { return transformer(m, 6, 192, 1, 3); });
    run("convolutions with skips, 64", ours, out, [](Model &m) { return unet(m, 64); });
    run("convolutions with skips, 96", ours, out, [](Model &m) { return unet(m, 96); });
    run("views, 1000 wide", ours, out, [](Model &m) { return views(m, 1000); });
    decode(ours, out);
    std::fclose(out);
    return wrong;
}
