/* What runs under one setting need, in this process. */
#ifndef ORT_MEASURE_HPP
#define ORT_MEASURE_HPP

#include "prepared.hpp"

#include <thread>

inline double median(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

inline double least(const std::vector<double> &values) {
    return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

struct Measured {
    double first_peak = 0, later_peak = 0, first_ms = 0;
    std::vector<double> later_ms;
};

/* One run after the other. The first of each shape is apart. */
inline void in_turn(const Loaded &model, const Settings &s, Measured &to) {
    std::FILE *out = std::fopen(s.outputs.empty() ? "/dev/null" : s.outputs.c_str(), "wb");
    for (int run = 0; run < s.runs * s.shapes(); run++) {
        const bool first = run < s.shapes();
        if (!first) {
            hosts::reset_peak();
        }
        const double before = hosts::processor_ms();
        model.run(run, out);
        const double ms = hosts::processor_ms() - before, peak = hosts::peak_mib();
        (first ? to.first_peak : to.later_peak) = std::max(first ? to.first_peak : to.later_peak, peak);
        first ? void(to.first_ms += ms / s.shapes()) : to.later_ms.push_back(ms);
        if (!s.failing.empty() && model.attempt(s.failing, nullptr).empty()) {
            std::printf("WRONG a run that was to fail did not\n");
        }
    }
    std::fclose(out);
}

/* One run alone, so that a plan exists; then several threads at once. */
inline void together(const Loaded &model, const Settings &s, Measured &to) {
    model.run(0, nullptr);
    to.first_peak = hosts::peak_mib();
    hosts::reset_peak();
    const double before = hosts::processor_ms();
    std::vector<std::thread> threads;
    for (int t = 0; t < s.together; t++) {
        threads.emplace_back([&, t] {
            const std::string name = s.outputs.empty() ? "/dev/null" : s.outputs + "." + std::to_string(t);
            std::FILE *mine = std::fopen(name.c_str(), "wb");
            for (int run = 0; run < s.runs; run++) {
                model.run(run + t, mine);
            }
            std::fclose(mine);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    to.later_ms.push_back((hosts::processor_ms() - before) / (s.runs * s.together));
    to.later_peak = hosts::peak_mib();
}

inline arenite_pool_stats_t pool_stats(const OnArenite &memory) {
    arenite_pool_stats_t stats{};
    stats.struct_size = sizeof stats;
    if (arenite_pool_stats(memory.pool(), &stats) != ARENITE_OK) {
        std::printf("WRONG the pool does not tell its statistics\n");
    }
    return stats;
}

inline void print_frames(const OnArenite &memory) {
    const arenite_frame_stats_t frames = frame_stats(memory);
    const arenite_pool_stats_t pool = pool_stats(memory);
    std::printf("FRAMES frames=%llu recorded=%llu passed=%llu served=%llu mismatched=%llu waiting=%llu outside=%llu "
                "instances=%llu area=%.1f pool_peak=%.1f regions=%llu fallback=%llu\n",
                (unsigned long long)frames.frames, (unsigned long long)frames.recorded,
                (unsigned long long)frames.passed, (unsigned long long)frames.served,
                (unsigned long long)frames.mismatched, (unsigned long long)frames.waiting,
                (unsigned long long)frames.outside, (unsigned long long)frames.instances,
                double(frames.area_bytes) / 1048576, double(pool.peak_requested_bytes) / 1048576,
                (unsigned long long)pool.regions, (unsigned long long)pool.fallback_blocks);
    if (pool.bad_pointers != 0) {
        std::printf("WRONG the pool was given pointers that are not its own\n");
    }
}

inline const char *form_name(const Settings &s, const std::string &file) {
    return file == s.model ? "as it is" : "optimized copy";
}

/* Prints a line of results. The program's exit status. */
inline int measure(const Settings &s) {
    const Folder home;
    const bool prepared = s.mode == "prepared";
    const std::string file = prepared ? prepare(s, home) : s.model;
    const Engine engine(s.library.c_str());
    if (s.mode == "optimize") {
        return Loaded(engine, s, "default", s.model, s.outputs).error().empty() ? 0 : 3;
    }
    const Loaded model(engine, s, prepared ? "arenite" : s.mode, file);
    if (!model.error().empty()) {
        std::fprintf(stderr, "%s\n", model.error().c_str());
        return 3;
    }
    const double loaded = hosts::resident_mib();
    Measured m;
    (s.together == 1 ? in_turn : together)(model, s, m);
    std::printf("RESULT mode=%s loaded=%.1f files=%.1f first_peak=%.1f later_peak=%.1f first_ms=%.1f later_ms=%.2f "
                "least_ms=%.2f\n",
                s.mode.c_str(), loaded, hosts::file_mib(), m.first_peak, m.later_peak, m.first_ms, median(m.later_ms),
                least(m.later_ms));
    if (prepared) {
        std::printf("FORM %s\n", form_name(s, file));
    }
    if (model.memory() != nullptr) {
        print_frames(*model.memory());
    }
    return 0;
}

/* Runs of the default setting and of arenite by turns in one process, so that both meet the same machine. */
inline int race(const Settings &s) {
    const Folder home;
    const std::string file = prepare(s, home);
    const Engine engine(s.library.c_str());
    const Loaded usual(engine, s, "default", s.model), ours(engine, s, "arenite", file);
    if (!usual.error().empty() || !ours.error().empty()) {
        std::fprintf(stderr, "%s%s\n", usual.error().c_str(), ours.error().c_str());
        return 3;
    }
    std::vector<double> ms[2], ratios;
    for (int round = -2; round < s.race; round++) {
        double now[2] = {0, 0};
        for (int turn = 0; turn < s.shapes(); turn++) {
            for (int k = 0; k < 2; k++) {
                const int which = (round + turn + k) & 1;
                const double before = hosts::processor_ms();
                (which == 0 ? usual : ours).run(turn, nullptr);
                now[which] += (hosts::processor_ms() - before) / s.shapes();
            }
        }
        if (round >= 0) { /* the first two record, and trace */
            ms[0].push_back(now[0]);
            ms[1].push_back(now[1]);
            ratios.push_back(now[1] / now[0]);
        }
    }
    std::printf("processor ms a run: default %.2f (least %.2f), arenite, %s, %.2f (least %.2f); median of %d ratios %.3f, "
                "ratio of the least %.3f\n",
                median(ms[0]), least(ms[0]), form_name(s, file), median(ms[1]), least(ms[1]), s.race, median(ratios),
                least(ms[1]) / least(ms[0]));
    return 0;
}

#endif
