/* The program's command line. */
#ifndef ORT_SETTINGS_HPP
#define ORT_SETTINGS_HPP

#include "model.hpp"

#include <algorithm>

struct Settings {
    std::string library, model, mode, outputs;
    std::vector<ort::Dims> dims; /* of the first input, in turn */
    ort::Dims failing;           /* with which a run fails, after each that does not */
    ort::Wishes wishes;
    int runs = 6, threads = 1, together = 1, race = 0;
    bool keep_outputs = false, settle = false, optimized = false;

    int shapes() const { return std::max(1, int(dims.size())); }

    /* False where they are wrong. */
    bool parse(int argc, char **argv);

    static void usage(const char *program) {
        std::fprintf(stderr,
                     "usage: %s --library libonnxruntime.so MODEL [--dims 1,3,640,640]... [--axis NAME=N]... [--value INPUT=N]... [--below INPUT=N]...\n"
                     "       [--runs N] [--threads N] [--together N] [--race N] [--failing DIMS] [--keep-outputs] [--settle]\n"
                     "       [--optimized] [--mode default|nopattern|noarena|plain|pool|arenite|prepared]\n",
                     program);
    }

private:
    static bool named(const std::string &text, std::map<std::string, std::int64_t> &into) {
        const std::size_t at = text.find('=');
        if (at == std::string::npos) {
            return false;
        }
        into[text.substr(0, at)] = std::atoll(text.c_str() + at + 1);
        return true;
    }

    static ort::Dims numbers(const std::string &text) {
        ort::Dims dims;
        for (std::size_t at = 0; at < text.size(); at = text.find(',', at), at += at != std::string::npos) {
            dims.push_back(std::strtoll(text.c_str() + at, nullptr, 10));
        }
        return dims;
    }
};

inline bool Settings::parse(int argc, char **argv) {
    const std::map<std::string, bool *> flags = {
        {"--keep-outputs", &keep_outputs}, {"--settle", &settle}, {"--optimized", &optimized}};
    const std::map<std::string, std::string *> texts = {
        {"--library", &library}, {"--mode", &mode}, {"--outputs", &outputs}};
    const std::map<std::string, int *> counts = {
        {"--runs", &runs}, {"--threads", &threads}, {"--together", &together}, {"--race", &race}};
    for (int i = 1; i < argc; i++) {
        const std::string a = argv[i];
        if (flags.count(a) != 0) {
            *flags.at(a) = true;
        } else if (a.rfind("--", 0) != 0) {
            model = a;
        } else if (++i == argc) {
            return false;
        } else if (texts.count(a) != 0) {
            *texts.at(a) = argv[i];
        } else if (counts.count(a) != 0) {
            *counts.at(a) = std::max(1, std::atoi(argv[i]));
        } else if (a == "--dims") {
            dims.push_back(numbers(argv[i]));
        } else if (a == "--failing") {
            failing = numbers(argv[i]);
        } else if (!(a == "--axis"    ? named(argv[i], wishes.axes)
                     : a == "--below" ? named(argv[i], wishes.below)
                                      : a == "--value" && named(argv[i], wishes.values))) {
            return false;
        }
    }
    return !library.empty() && !model.empty();
}

#endif
